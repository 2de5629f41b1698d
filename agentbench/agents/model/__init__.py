"""Clients of models: the protocol, the base classes, the way of a request to a service."""
