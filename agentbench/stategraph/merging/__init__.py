"""Merges the results of nodes into the next state: the declarations of a state class, and how updates are merged."""
