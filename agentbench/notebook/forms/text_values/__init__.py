"""Values as text that a person may type, and back."""
