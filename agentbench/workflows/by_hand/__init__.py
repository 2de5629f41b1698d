"""Entry points that the engine itself does not use, for code that drives a runner by hand."""
