"""Clients of OpenAI-compatible services: Chat Completions, Responses, embeddings."""
