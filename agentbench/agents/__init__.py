"""Agents: models that are given tools, a memory and a task. Works without the workflow engine."""
