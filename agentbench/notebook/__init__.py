"""What a person sees: graphs, panels, frames, steppers."""
