"""`annotator bench effort`: finished labels against a person's effort.

A simulated person (benchmark/simulated_people.py) performs the actions that a policy chooses (policies.py) on a copy of
a project, and curves.py counts what is finished after each. Start with effort_measurement.py.
"""
