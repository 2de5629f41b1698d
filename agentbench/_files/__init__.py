"""Files that only their owner can read, locks between processes, and files of lines."""
