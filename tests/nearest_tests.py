"""Runs the tests nearest to what was changed: those of the repository, and those that import a changed module.

    python tests/nearest_tests.py           # changes since origin/main, or since the last commit where there is none

A test file is near when it was changed itself, is named after a changed module, or imports one. Browsers,
processes and trainings are left to `make test`, and so are all but the nearest files when many are near.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path("tests")
MAX_FILES = 12
SELECTION = "not browser and not process and not training and not slow and not readers"


def list_changed_files() -> list[str]:
    """Return the paths of changed and new files, relative to the repository."""
    base = next((name for name in ("origin/main", "HEAD") if _ask_git("rev-parse", "--verify", "--quiet", name)), None)
    changed = _ask_git("diff", "--name-only", base) if base else []
    return [*changed, *_ask_git("ls-files", "--others", "--exclude-standard")]


def find_nearest_tests(changed: Iterable[str], texts: dict[Path, str]) -> list[Path]:
    """Return test files, the nearest to the changed files first.

    Args:
        texts: Text of each test file.
    """
    modules = [name_module(path) for path in changed if path.endswith(".py") and not path.startswith("tests/")]
    ranked = {}
    for file, text in texts.items():
        names = {name.rpartition(".")[2] for name in modules}
        if file.as_posix() in changed:
            ranked[file] = 0
        elif file.stem.removeprefix("test_") in names:
            ranked[file] = 1
        elif any(imports_module(text, name) for name in modules):
            ranked[file] = 2
    return sorted(ranked, key=lambda file: (ranked[file], file))


def main() -> int:
    """Run the tests and return pytest's exit status."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("*/test_*.py"))}
    near = find_nearest_tests(list_changed_files(), texts)
    files = [*near[:MAX_FILES], *sorted((TESTS / "repository").glob("test_*.py"))]
    if len(near) > MAX_FILES:
        rooms = sorted({file.parent.name for file in near[MAX_FILES:]})
        print(f"{len(near) - MAX_FILES} test files that import what was changed are left out. Run: make test ROOM=NAME")
        print(f"    with NAME one of: {', '.join(rooms)}", flush=True)
    words = [sys.executable, "-m", "pytest", "-m", SELECTION, *dict.fromkeys(map(str, files))]
    return subprocess.run([*words, "--deselect", "tests/repository/test_script_types.py"], check=False).returncode


def name_module(path: str) -> str:
    """Return the name by which tests import a file, such as annotator.store.labels.decide."""
    return path.removesuffix(".py").removeprefix("models/").removesuffix("/__init__").replace("/", ".")


def imports_module(text: str, module: str) -> bool:
    """Return whether the text of a file imports a module."""
    package, _, name = module.rpartition(".")
    direct = rf"\bfrom {re.escape(package)} import (?:\([^)]*\b{name}\b|[^\n(]*\b{name}\b)"
    return re.search(rf"\b(?:from|import) {re.escape(module)}\b|{direct}", text) is not None


def _ask_git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main())
