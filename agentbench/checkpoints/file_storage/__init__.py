"""A folder of checkpoints: one journal per chain, or one file per checkpoint in the pickled format."""
