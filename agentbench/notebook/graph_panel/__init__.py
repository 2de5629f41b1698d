"""The graph of a workflow as a panel whose states change."""
