"""Imports: sources are staged in a temporary SQLite file, previewed and stored at once. Start with staging.py."""
