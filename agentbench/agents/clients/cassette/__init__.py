"""Traffic with a model, recorded in a file that people read, and played back from it."""
