"""The workflow and its runs, streams, results and reports."""
