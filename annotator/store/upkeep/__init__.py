"""Upkeep of a project: backups, health and consistency checks. Start with backup.py."""
