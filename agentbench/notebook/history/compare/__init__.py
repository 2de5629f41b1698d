"""Two runs or two chains of checkpoints beside each other."""
