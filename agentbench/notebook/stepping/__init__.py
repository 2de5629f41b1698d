"""The stepper: one run, superstep by superstep."""
