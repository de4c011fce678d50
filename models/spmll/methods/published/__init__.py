"""The published methods for single positive labels, one file each, with the paper; a loss alone is an assignment.

A new method is one file here and one line in spmll/methods/__init__.py; methods/base.py defines a method. Code that
several methods share has files of its own: ranks.py, large_loss.py, lagc_losses.py, gr_guided.py, label_decoder.py,
label_enhancement.py. Begin with loss_only.py, then gr.py.
"""
