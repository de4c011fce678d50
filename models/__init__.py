"""The learning code: tensors in, tensors out. It knows nothing of projects, pages or databases.

This file imports nothing, so that the files which need only numpy (metrics.py) can be used where torch is never loaded.
"""
