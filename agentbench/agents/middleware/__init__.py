"""Middleware: functions that wrap agent runs, model calls and tool calls."""
