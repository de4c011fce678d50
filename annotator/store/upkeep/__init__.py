"""Keeping a project: backups, bringing one back, checks of its health and consistency.

Begin with health.py (`annotator doctor`) and backup.py.
"""
