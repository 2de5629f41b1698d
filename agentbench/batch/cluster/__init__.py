"""Runs of a batch, and executors of one run, on the workers of a Dask cluster."""
