"""Exported classifiers and their model cards, used without torch."""
