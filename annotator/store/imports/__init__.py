"""What comes from outside: staged in a temporary SQLite file, previewed, stored in one transaction.

Set-based statements store what deciding row by row would (commit.py); an import is undone as one (imports.py). Begin
with staging.py.
"""
