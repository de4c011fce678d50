"""Autopilot: the work that finishes most labels per second of this annotator (docs/learning-loop.md).

Start with planner.py.
"""
