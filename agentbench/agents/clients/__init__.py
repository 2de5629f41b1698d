"""Clients of models: offline ones, recorded ones, services. Their public names are found in `agentbench`."""
