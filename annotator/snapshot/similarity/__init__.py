"""Rank images by their similarity to an example, exactly for the most similar ones, and choose varied ones of these.

Start with image_similarity.py.
"""
