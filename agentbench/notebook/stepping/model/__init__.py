"""Pure: what a stepper knows, and what it does next."""
