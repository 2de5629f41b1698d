"""What a run did: read from its events and checkpoints, for everything that shows it."""
