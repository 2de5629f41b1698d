"""Pure: what a page displays of a stepper."""
