"""Decisions and the data derived from them: labels, tallies (counts), audits and disagreements."""
