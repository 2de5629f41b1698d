"""A conversation with an agent, a workflow or a graph in a cell."""
