"""Scores of other models: outside_predictions.py stores them as a source of predictions, score_tables.py reads them
from files and score_frames.py from tables of programs; in_words.py says what sources there are.
"""
