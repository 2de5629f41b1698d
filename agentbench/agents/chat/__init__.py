"""Clients of chat models and of embedding models: what they have to offer, and the base classes that do the rest."""
