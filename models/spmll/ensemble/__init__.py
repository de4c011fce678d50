"""The models of `auto`: stacked heads on images and regions. Start with fit_ensemble.py."""
