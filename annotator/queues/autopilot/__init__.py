"""The next best action: which kind of work finishes most labels per second of this annotator.

planner.py is the place to begin: it collects candidate actions, takes the one with the highest acquisition value
for its time (acquisition.py) and leases what it needs. relabel.py finds answers to check again.
The times are those of snapshot/time_model.py; docs/learning-loop.md has the formulas and their sources.
"""
