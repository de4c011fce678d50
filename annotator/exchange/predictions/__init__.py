"""Scores of other models, stored as a source of predictions.

They come from files (score_tables.py) or from pandas tables (score_frames.py). Begin with outside_predictions.py.
"""
