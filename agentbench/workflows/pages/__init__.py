"""Spellings of the engine that it does not use itself: for code that drives a runner by hand."""
