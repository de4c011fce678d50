"""Training, from labels to a published run and its incremental updates. Entry point: train.py."""
