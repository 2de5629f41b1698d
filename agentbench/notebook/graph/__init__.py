"""The graph of a workflow: shape, text, DOT, picture."""
