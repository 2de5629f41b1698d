"""How a superstep runs."""
