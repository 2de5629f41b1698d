"""What a run reports: event types, their JSON, captured output, listeners."""
