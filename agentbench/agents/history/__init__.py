"""Providers that store conversations."""
