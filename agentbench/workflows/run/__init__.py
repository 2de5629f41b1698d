"""What a person holds: the workflow, its runs, streams, results and reports."""
