"""What was typed into a form, and the value that it makes."""
