"""Spans and metrics of agents, models and tools; nothing here is imported before telemetry is set up."""
