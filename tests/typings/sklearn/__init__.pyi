"""The part of scikit-learn that the map uses.

The package has no types of its own, and to infer them from its code takes a fifth of the whole check.
"""
