"""A consistent view of a model and of the answers since its training. Never loads torch.

May import only store and below. Start with snapshot.py.
"""
