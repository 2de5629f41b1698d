"""Builders of the common orchestration patterns; each one builds an ordinary workflow."""
