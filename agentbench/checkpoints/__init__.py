"""What is saved of a run, and where. Its public names are found in `agentbench`."""
