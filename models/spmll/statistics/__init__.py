"""Statistics without torch: numpy arrays in, numpy arrays out.

logistic.py is the one solver of logistic regressions; calibration, stacking and the time model use it.
certified_recall.py estimates recall and precision from stratified samples, sequential_bound.py bounds mistakes at any
time. Exact intervals of single counts are scipy's. Begin with metrics.py.
"""
