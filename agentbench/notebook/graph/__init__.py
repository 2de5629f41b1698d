"""Pictures of graphs: layouts, the painter, text."""
