"""The only room that touches the disk: one SQLite file, array files beside it, and the images.

Rooms from the lowest up, each importing only those before it: disk, pictures; schema; database; features, locations,
runs; images; labels, events; networks, people, upkeep; classes; gallery, imports. A function is named for what people
do, never for its SQL. May import records, settings, indexing, humanize, errors and what of models needs no torch. Begin
with database/database.py and labels/decisions.py.
"""

from annotator.store import _sqlite_utils as _sqlite_utils  # before anything imports sqlite_utils
