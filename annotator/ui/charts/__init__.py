"""The charts of the Progress and Certificate pages, built from tables. Begin with theme.py."""
