"""Scores of other models, stored as a source of predictions.

They come from files (score_files.py) or from pandas tables (score_dataframes.py). Begin with prediction_import.py.
"""
