"""The models of `auto`: a gradient-trained head and one on image regions, stacked, corrected as answers arrive.

stacking.py combines the heads with predictions from elsewhere, incremental_update.py corrects a run between two
trainings, gram_cache.py keeps the sums that do not depend on labels. Begin with fit_ensemble.py.
"""
