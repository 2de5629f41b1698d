"""A compiled graph on the engine: its nodes as executors, and what happens between two supersteps."""
