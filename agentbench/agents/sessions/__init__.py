"""Sessions: the state of a conversation between runs, and the context of one run, which providers extend."""
