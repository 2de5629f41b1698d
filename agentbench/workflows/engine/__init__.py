"""Running supersteps."""
