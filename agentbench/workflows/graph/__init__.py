"""The definition of a workflow: edges, conditions, signature, validation, routing tables."""
