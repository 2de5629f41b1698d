"""One object in a cell: runs, checkpoints, messages, agents, tools, storages."""
