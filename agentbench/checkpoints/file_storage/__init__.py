"""A folder of checkpoints: manifests, packs of parts, and an index that is only a cache."""
