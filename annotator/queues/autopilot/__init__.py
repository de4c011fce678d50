"""The next best action: which kind of work finishes most labels per second of this annotator.

Begin with planner.py: it collects candidate actions, takes the one with the highest acquisition value for its time
(acquisition.py), or one at random, and has it leased to the page (actions.py). relabel.py finds answers to check
again, wording.py writes what the page says. The seconds are those of snapshot/time_model.py, which the certificate
uses too; docs/learning-loop.md has the formulas and their sources.
"""
