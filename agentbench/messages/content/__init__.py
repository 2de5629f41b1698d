"""Contents of messages: text, data, calls, results, approvals."""
