"""Builders of the patterns that people reach for first; each makes an ordinary workflow."""
