"""Statistics without torch: numpy arrays in, numpy arrays out.

calibration.py maps scores to probabilities; stratified_sampling.py draws samples of cells and certificate.py
estimates recall and precision from them; sequential_bound.py bounds mistakes at any time;
metrics.py has mAP and F1, intervals.py exact intervals of counts.
"""
