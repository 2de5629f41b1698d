"""Compatibility modules: other names for modules that are defined elsewhere."""
