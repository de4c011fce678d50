"""Imports into a project: preview, then store all or nothing. Start with import_plan.py."""
