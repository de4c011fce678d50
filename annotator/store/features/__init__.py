"""Features of images in shards: the files that embedding writes for training and scoring.

Any process, on any machine, may write shards. A shard is complete or absent and is checked when it is read, so a killed
writer costs its shard and nothing else. Rows made of another content than an image's are not used
(project_contents.py). Loads no torch. Begin with feature_cache.py.
"""
