"""`annotator bench collections`: compare the method `auto` with the best published method on many collections.

Start with collections_comparison.py.
"""
