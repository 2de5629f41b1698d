"""Compaction: a conversation is fitted into what a model can read; messages are marked, never edited."""
