"""The steps m001 to m024 of development versions before the first release, for convert_project.py; never edited."""

from importlib import import_module

from sqlite_utils import Migrations

EARLIER_MIGRATIONS = Migrations("annotator")
for _number in range(1, 25):
    EARLIER_MIGRATIONS()(getattr(import_module(f"{__name__}.m{_number:03}"), f"m{_number:03}"))
