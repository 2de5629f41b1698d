"""The loop between a model and its tools, with approvals."""
