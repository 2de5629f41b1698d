"""Context providers that store conversations."""
