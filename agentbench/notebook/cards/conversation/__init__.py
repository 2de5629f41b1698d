"""Conversations for display: the text of each speaker, with tool calls folded."""
