"""Upkeep of a project: backups, restoring them, checks of health and consistency.

Begin with health.py (`annotator doctor`) and backup.py.
"""
