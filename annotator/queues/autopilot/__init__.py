"""The next best action: which kind of work finishes most labels per second of this annotator.

planner.py collects candidate actions and takes the one with the highest acquisition value for its time
(acquisition.py), or one at random. docs/learning-loop.md has the formulas and their sources. Begin with planner.py.
"""
