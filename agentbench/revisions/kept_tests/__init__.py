"""Keep as test: a finished run becomes a test of its workflow."""
