"""What `auto` trains: a gradient-trained head and one on image regions, stacked and corrected as answers arrive.

fit_ensemble.py is the place to begin; regions.py encodes regions, stacking.py fits the stacked model to answered
cells, incremental_update.py corrects a run between two trainings.
"""
