"""Features of images in shards: what embedding leaves on the disk for training and scoring.

Any process, on any machine, may write shards. A shard is there as a whole or not at all and is checked when it is read,
so a killed writer costs its shard and nothing else. Rows made of another content than an image's are not used
(contents.py). Loads no torch. Begin with cache.py.
"""
