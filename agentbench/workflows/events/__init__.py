"""The events of a run: their types, their JSON form, captured output, listeners."""
