"""Ready-made parts of state graphs."""
