"""Storage of a project: one SQLite file, array files next to it, and the images.

Layers, lowest first: disk, pictures, schema, database, features, locations, runs, images, labels, events,
networks, people, upkeep, classes, gallery, imports. Start with database/database.py.
"""

from annotator.store import _sqlite_utils as _sqlite_utils  # before anything imports sqlite_utils
