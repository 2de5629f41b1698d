"""Compaction of conversations to fit the context window of a model. Messages are marked, never edited."""
