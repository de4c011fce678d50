"""The plan to the end of a project, and the account of promised and found positives that corrects it.

Start with closing_plan.py.
"""
