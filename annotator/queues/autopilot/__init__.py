"""Autopilot: the work that finishes most labels per second of one annotator (docs/learning-loop.md).

Start with planner.py.
"""
