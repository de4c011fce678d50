"""A consistent view of a model and the answers since, without torch.

May import only store and below. Start with snapshot.py.
"""
