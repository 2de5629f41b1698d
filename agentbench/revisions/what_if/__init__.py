"""What if: branches of a run under changed conditions, many times, and whether the change had an effect."""
