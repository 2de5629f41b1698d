"""What models and people say: contents, messages, responses, and streams of updates."""
