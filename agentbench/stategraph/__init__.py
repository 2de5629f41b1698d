"""State graphs: nodes that read a typed state and return updates, on the engine of workflows."""
