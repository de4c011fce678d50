"""Finished labels against a person's effort: `annotator bench effort`. Begin with measure.py.

people.py answers, session.py performs one action after the other on a project_copy.py, policies.py chooses them
(changed_constants.py: by another Autopilot), play.py lets each policy work to its end. curves.py, comparison.py,
report.py and plot.py say what came of it.
"""
