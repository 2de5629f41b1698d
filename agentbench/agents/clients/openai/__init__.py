"""Clients of services that speak the protocol of OpenAI: Chat Completions, Responses, embeddings."""
