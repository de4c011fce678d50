"""The tables of project.db and the schema steps that create and change them.

Begin with step_001.py, whose files describe a row of each table. triggers.py keeps counts and derived rows.
A later step is a module step_NNN with a function step_NNN(db), found by its name and applied once, in order.
A released step is never edited. A step that recreates a table recreates its triggers, except image_changed,
which is recreated after every step.
"""

import pkgutil
import re
from collections.abc import Callable
from functools import wraps
from importlib import import_module

from sqlite_utils import Database, Migrations

from annotator.store.schema.triggers import create_image_change_trigger

MIGRATIONS = Migrations("annotator")
# Steps of development versions before the first release; tests/convert_project.py converts their projects.
DEVELOPMENT_STEP_PATTERN = re.compile(r"m\d{3}")
STEP_NAMES: list[str] = []  # in the order in which they are applied


def add_step(step: Callable[[Database], None]) -> None:
    """Register a schema step after all others, under the name of its function."""

    @wraps(step)  # with its name
    def apply_step(db: Database) -> None:
        step(db)
        create_image_change_trigger(db)  # with the columns that `image` has now

    MIGRATIONS()(apply_step)
    STEP_NAMES.append(apply_step.__name__)


for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if re.fullmatch(r"step_\d{3}", _name):
        add_step(getattr(import_module(f"{__name__}.{_name}"), _name))
