"""Chat clients: offline, recorded, and for services. Their public names are in `agentbench`."""
