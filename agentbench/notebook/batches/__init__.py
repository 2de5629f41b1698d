"""The views of a batch: its live panel, frame, map, inbox and comparison."""
