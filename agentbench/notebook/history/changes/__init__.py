"""What differs between two checkpoints, and staged edits, as lines and as rows."""
