"""The graph as DOT and Mermaid text."""
