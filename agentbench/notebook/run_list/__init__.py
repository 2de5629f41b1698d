"""The runs in a storage, as a table to click."""
