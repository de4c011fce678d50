"""Runs the tests of pages with the oldest and the newest version of Streamlit that pyproject.toml allows.

    python tests/run_streamlit_versions.py      # or: make test-streamlit

Each version is installed into a folder of its own below build/. Its dependencies are the installed ones.
The exit status is 1 when a test fails.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
# All pages without a browser, options, access, logins, menus, keys and shipped files in one: some minutes.
TESTS = (
    "tests/ui/test_pages.py",
    "tests/ui/test_class_form.py",
    "tests/ui/test_streamlit_options.py",
    "tests/ui/test_access_door.py",
    "tests/ui/test_login.py",
    "tests/ui/test_menus.py",
    "tests/ui/test_page_bundles.py",
    "tests/ui/test_annotate.py",
    "tests/promises/test_websocket_floods.py",
)


def main() -> int:
    """Return the exit status: 0 when all tests pass with both versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = next(need for need in map(Requirement, project["dependencies"]) if need.name == "streamlit").specifier
    oldest = next(bound.version for bound in allowed if bound.operator == ">=")
    tried, failed = [], []
    for name, wanted in (("oldest", f"=={oldest}"), ("newest", str(allowed))):
        folder = ROOT / "build" / f"streamlit-{name}"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
        subprocess.run([*install, f"streamlit{wanted}"], check=True)
        paths = (str(folder), os.environ.get("PYTHONPATH", ""))
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        show = [sys.executable, "-c", "import streamlit as st; print(st.__version__, st.__file__, sep='\\n')"]
        shown = subprocess.run(show, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        version, place = shown.stdout.splitlines()
        if not Path(place).is_relative_to(folder):
            sys.exit(f"The tests would run with Streamlit {version} of {place} in place of {folder}.")
        if version in tried:
            print(f"The newest allowed version is {version}, too.")
            continue
        tried.append(version)
        print(f"Streamlit {version}, the {name} allowed version:", flush=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *TESTS]
        if subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode:
            failed.append(version)
    if failed:
        print(f"Tests failed with Streamlit {' and '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
