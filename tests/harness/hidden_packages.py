"""Processes in which packages are missing: an import of them fails as if they were not installed."""

import os
from collections.abc import Iterable
from pathlib import Path


def build_environment_without(names: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the environment of Python processes that do not find these modules.

    Args:
        names: Modules without dots.
        folder: Where a module `sitecustomize` is written that hides them.
    """
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules |= dict.fromkeys({list(names)})\n")
    places = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}
