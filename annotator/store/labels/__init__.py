"""Decisions and their derived data: labels, tallies, audits and disagreements.

Decisions are appended and never changed. Start with decisions.py.
"""
