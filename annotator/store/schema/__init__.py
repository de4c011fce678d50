"""The tables of project.db: step_001 creates them, and later changes are small steps of their own.

Start reading in step_001.py: its files say of each table what one row is. triggers.py keeps counts and derived rows.

Decisions are appended and never changed. `label` holds the newest state of each image-class cell and can be rebuilt
from them. `image` is a content, `file` a place where that content is stored, so a moved or copied file is never a
second image. Order is decided by decision ids, because clocks can jump.

A later step is a file step_NNN.py with a function step_NNN(db). Steps are found by their names and applied in order,
each once. A step that was released is never edited. A step that rewrites `decision` or `image` also creates their
triggers and views again; the trigger image_changed is created again after every step.
"""

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module

from sqlite_utils import Database, Migrations

from annotator.store.schema.triggers import create_image_change_trigger

MIGRATIONS = Migrations("annotator")
# Steps of development versions before the first release; tests/convert_project.py converts their projects.
DEVELOPMENT_STEP_PATTERN = re.compile(r"m\d{3}")
STEP_NAMES: list[str] = []  # in the order in which they are applied


def add_step(step: Callable[[Database], None]) -> None:
    """Add a step after all others, under the name of its function."""

    def apply_step(db: Database) -> None:
        step(db)
        create_image_change_trigger(db)  # with the columns that `image` has now

    MIGRATIONS(name=step.__name__)(apply_step)
    STEP_NAMES.append(step.__name__)


for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if re.fullmatch(r"step_\d{3}", _name):
        add_step(getattr(import_module(f"{__name__}.{_name}"), _name))
