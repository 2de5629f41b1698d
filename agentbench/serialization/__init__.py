"""Values as tagged JSON and back, without pickle. Its public names are found in `agentbench`."""
