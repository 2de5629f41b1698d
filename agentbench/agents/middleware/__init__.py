"""Functions around a run of an agent, a call of a model and a call of a tool."""
