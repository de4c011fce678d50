"""Builds portable classifiers, which need neither project nor torch."""
