"""Forms that ask a person: from types and requests to fields, from what was typed to values."""
