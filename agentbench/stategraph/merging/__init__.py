"""From what nodes return to the next state: what a state class declares, and how updates are merged."""
