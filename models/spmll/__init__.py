"""The learning code: tensors in, tensors out. It knows nothing of projects, pages or databases.

This file imports nothing, so that what needs only numpy (statistics/metrics.py) can be used where torch is never
loaded.
"""
