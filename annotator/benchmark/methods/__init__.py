"""`annotator bench methods`: compare all training methods on anybody's data.

task.py draws the labels and computes the figures of one seed, cells.py runs the trainings, also on a Ray cluster, and
tune.py gives each method the same budget. cole.py is the linear protocol of a paper. Begin with methods_comparison.py.
"""
