"""What a workflow is: edges, their conditions, the signature, validation, routing tables."""
