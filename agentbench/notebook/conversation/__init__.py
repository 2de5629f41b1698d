"""Conversations as people read them: who said what, with the calls of tools folded away."""
