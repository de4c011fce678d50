"""Image ranking by similarity to an example, exact at the top, with a varied selection.

Start with image_similarity.py.
"""
