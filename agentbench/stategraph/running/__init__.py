"""Runs a compiled graph on the engine: its nodes as executors, and the work between two supersteps."""
