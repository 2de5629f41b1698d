"""Modules under the paths of another dialect; they only name what is elsewhere."""
