"""Values as tagged JSON and back, without pickle. The public names are exported by `agentbench`."""
