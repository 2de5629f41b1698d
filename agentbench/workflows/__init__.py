"""The engine: executors send each other typed messages along edges, superstep after superstep."""
