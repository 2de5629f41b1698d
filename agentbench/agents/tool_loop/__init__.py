"""The loop between a model and its tools: calls are run and answered until the model has no more."""
