"""Image features in shard files, written by any process for training and scoring.

A shard file is complete or does not exist.
"""
