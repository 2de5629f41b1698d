"""Clients of Model Context Protocol servers: tools, prompts, sampling, elicitation and skills."""
