"""How two values are compared, and what is said of it."""
