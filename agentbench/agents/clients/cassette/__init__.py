"""Record traffic with a model in a readable file, and replay it."""
