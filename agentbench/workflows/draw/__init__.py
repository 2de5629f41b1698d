"""The model of a drawn graph, its DOT and Mermaid text, and the code that builds it."""
