"""Classes: their names, and what people change of them.

A change (rename, merge, split, archive, order) is one transaction and one row of `class_change`, undone as a whole.
Begin with classes.py; changes.py stores changes, labels.py keeps the labels true to them.
"""
