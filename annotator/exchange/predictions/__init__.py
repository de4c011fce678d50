"""Scores of other models, stored as prediction sources. Start with prediction_import.py."""
