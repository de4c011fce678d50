"""Training a linear head on cached features: the fastest trainer, used by most methods.

training.py has `fit`, a generator of epochs; surrogate_head.py fits a linear head to another model's probabilities, so
that Grad-CAM can draw it. Begin with training.py.
"""
