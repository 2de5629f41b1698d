"""Keeping a conversation within what a model can read: messages are marked, never edited."""
