"""Opening a project, writing to it, and the array files beside it.

Database.writing is the only way to write: BEGIN IMMEDIATE, the right that the write needs, synchronous. Large results
are array files (arrays.py) and one row that points at them. Begin with database.py.
"""
