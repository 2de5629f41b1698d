"""What agents need for long work: a list of tasks, modes, helpers in the background, a memory that lasts."""
