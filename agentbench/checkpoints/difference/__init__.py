"""How two values are compared, and the changes that are found."""
