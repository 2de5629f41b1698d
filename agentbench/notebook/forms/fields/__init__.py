"""What a form has to ask: single fields and how they are grouped."""
