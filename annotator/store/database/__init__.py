"""Opening a project, writing to its database, and the array files next to it. Start with database.py."""
