"""How one input is run to its row: what is run, from where, in which limits, and what is counted."""
