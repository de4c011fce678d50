"""Image features in shard files, which any process writes completely or not at all, for training and scoring."""
