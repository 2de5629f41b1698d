"""The engine: executors, edges, supersteps, requests. Its public names are found in `agentbench`."""
