"""What a streamed call yields, by the mode of the stream."""
