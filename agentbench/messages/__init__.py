"""Messages of models and users: contents, messages, responses, and streams of updates."""
