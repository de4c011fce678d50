"""Builds portable classifiers, which need neither project nor torch. Start with portable_classifier.py."""
