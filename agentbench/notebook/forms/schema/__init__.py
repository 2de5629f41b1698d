"""The fields of a form, read from types and from JSON schemas."""
