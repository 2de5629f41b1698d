"""How a graph is declared."""
