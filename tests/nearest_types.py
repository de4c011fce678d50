"""Checks the types of changed modules and of the modules that import them; `make lint` checks all modules.

    python tests/nearest_types.py           # changes since origin/main, or since the last commit where there is none

A module is near when it was changed itself or imports one that was.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from nearest_tests import imports_module, list_changed_files, name_module

CHECKED_FOLDERS = ("annotator", "models", "sample_data", "tests/benchmarks")
"""The same as `include` of [tool.basedpyright] in pyproject.toml."""
BASEDPYRIGHT = [Path(sys.executable).parent / "basedpyright", "--pythonpath", sys.executable, "--level", "error"]


def find_nearest_modules(changed: Iterable[str], texts: dict[Path, str]) -> list[Path]:
    """Return the changed modules and the modules that import one of them.

    Args:
        texts: Text of each module that is checked.
    """
    paths = set(changed)
    names = [name_module(path) for path in paths if path.endswith(".py")]
    return [
        file
        for file, text in texts.items()
        if file.as_posix() in paths or any(imports_module(text, name) for name in names)
    ]


def main() -> int:
    """Check the nearest modules and return the exit status of basedpyright."""
    files = (file for folder in CHECKED_FOLDERS for file in sorted(Path(folder).rglob("*.py")))
    texts = {file: file.read_text(encoding="utf-8") for file in files if not file.name.startswith("test_")}
    near = find_nearest_modules(list_changed_files(), texts)
    print(f"Types of {len(near)} of {len(texts):,} modules, those nearest to what was changed.", flush=True)
    return subprocess.run([*BASEDPYRIGHT, *near], check=False).returncode if near else 0


if __name__ == "__main__":
    sys.exit(main())
