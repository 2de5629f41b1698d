"""The loop of a batch on one machine: which inputs begin when, what is counted, how rows are written."""
