"""Text from values: escaped, secrets masked, long values as trees."""
