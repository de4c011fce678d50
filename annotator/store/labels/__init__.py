"""Decisions, and everything that follows from them: labels, tallies, audits, disagreements.

A decision is appended and never changed; `label` holds the newest state of each cell and can be rebuilt
(derivation.py). refusals.py holds every bound on a decision. Begin with decisions.py.
"""
