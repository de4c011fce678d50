"""Classes: their names, and the changes that people make to them.

A change (rename, merge, split, archive, order) is one transaction and one row of `class_change`, undone as a whole.
Begin with classes.py; class_changes.py stores changes, class_labels.py updates the labels after them.
"""
