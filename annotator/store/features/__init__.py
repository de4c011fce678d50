"""Image features in shard files, written by any process for training and scoring.

A shard is complete or absent. Start with shards.py.
"""
