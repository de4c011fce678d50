"""The results of trainings: runs, their versions and probabilities, and predictions from elsewhere.

A version writes only the columns that changed and names those that hold the others (probabilities.py). Begin with
runs.py.
"""
