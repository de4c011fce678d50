"""`annotator bench team`: many people at work at once on one server.

teammates.py sends what pages send, at a person's pace; browsers.py works in front of a real Chromium, whose keys are
timed. Every decision is looked for in the database afterwards. Begin with team_measurement.py.
"""
