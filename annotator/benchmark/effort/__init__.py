"""`annotator bench effort`: finished labels against a person's effort.

A simulated person performs the actions that policies.py chooses, and curves.py counts what is finished. Start with
effort_measurement.py.
"""
