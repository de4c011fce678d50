"""Imports: sources are staged in a temporary SQLite file, previewed, and stored in one transaction.

Start with staging.py.
"""
