"""The tool loop, with approvals."""
