"""The tables of project.db, as numbered steps, a file each: new ones are added, old ones never edited.

Decisions are appended and never changed; `label` holds the newest state of each image-class cell and can be rebuilt
from them. `image` is a content, `file` a place where that content lies, so a moved or doubled file is never a second
image. Order is decided by decision ids; clocks can jump.
"""

import pkgutil
import re
from importlib import import_module

from sqlite_utils import Migrations

# Found by their names: m001.py has the function m001, and so on.
_NAMES = sorted(module.name for module in pkgutil.iter_modules(__path__) if re.fullmatch(r"m\d{3}", module.name))
STEPS = tuple(getattr(import_module(f"{__name__}.{name}"), name) for name in _NAMES)
MIGRATIONS = Migrations("annotator")
for step in STEPS:
    MIGRATIONS()(step)
