"""Chat Completions: messages, options, responses and updates."""
