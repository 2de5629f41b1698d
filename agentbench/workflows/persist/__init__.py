"""Between a run's state and a checkpoint."""
