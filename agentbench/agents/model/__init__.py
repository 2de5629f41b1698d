"""Chat clients and embedding clients: the protocols, the base classes, and the request path."""
