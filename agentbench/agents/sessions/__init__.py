"""What an agent remembers: sessions, what is added to a run before it starts, and where histories are kept."""
