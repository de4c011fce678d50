"""The published methods for single positive labels, one file each, with the paper.

A new one is one file here and one line in models/methods/__init__.py; methods/base.py says what a method is. What
several share stands in files of its own: ranks.py, large_loss.py, consistency.py, gr_guided.py, label_decoder.py,
label_enhancement.py. Begin with an.py.
"""
