"""The agent, and the ways to run it."""
