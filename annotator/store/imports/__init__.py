"""Imports: sources are staged in a temporary SQLite file, previewed, and stored in one transaction.

Set-based statements store the same as deciding row by row would (commit.py); an import is undone as a whole
(past_imports.py). Begin with staging.py.
"""
