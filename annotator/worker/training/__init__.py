"""One training, from labels to a published run, and its corrections as decisions arrive.

schedule.py decides when, training_set.py reads the labels, train.py trains, calibrate.py and publish.py finish;
incremental_update.py computes a version. Begin with train.py.
"""
