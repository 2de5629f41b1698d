"""agentbench: agent workflows as graphs, to be run, seen, stepped, rewound and forked."""

__version__ = "0.1.0"
