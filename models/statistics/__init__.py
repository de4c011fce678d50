"""Statistics without torch: numpy arrays in, numpy arrays out.

logistic.py is the one solver of logistic regressions; calibration.py maps scores to probabilities with it, and
stacker.py combines the scores of several models, also those of models from elsewhere (outside_scores.py).
stratified_sampling.py draws samples of cells, and certificate.py estimates recall and precision from them, which
double_reading.py widens by how often people err; bounds.py has what their intervals are made of.
sequential_bound.py bounds mistakes at any time; paired.py compares two scorings; agreement.py says how well people
agree, error_rates.py how often each of them errs; metrics.py has average precision, calibration error and thresholds;
time_regression.py estimates how long the parts of a task take. intervals.py has Wilson's of a share and that of a
median; exact intervals of single counts are scipy's (stats.binomtest, hypergeom).
"""
