"""Spans and metrics of agents, models and tools. These modules are imported only when telemetry is set up."""
