"""The Responses API: input, options, output and updates."""
