"""The tools of a `ToolNode`."""
