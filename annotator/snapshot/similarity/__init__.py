"""Ranking of images by similarity to examples, exact at the top, and varied samples. Start with image_similarity.py."""
