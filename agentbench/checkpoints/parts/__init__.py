"""Content-addressed storage: checkpoints share the parts that did not change."""
