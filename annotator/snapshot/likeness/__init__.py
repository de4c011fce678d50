"""Images like an example: how much all images are like it, exactly for the likest ones, and a varied few of these.

Begin with similar.py.
"""
