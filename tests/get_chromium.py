"""The browser the tests drive: the Chromium or Chrome that is there, or else one is got. It is never done without.

Run by `make test`, and by the tests themselves for whoever starts pytest alone.
"""

import os
import shutil
import subprocess
import sys

from harness.browser import find_chromium

from annotator.errors import AnnotatorError

MINUTES = 10


def get_chromium() -> str:
    """The path of a Chromium or Chrome.

    Tried in turn: one that is installed, Playwright's own download, the distribution's package (where packages may be
    installed without a password). Raises AnnotatorError, saying what was tried and how to get one, when all fail.
    """
    tried = []
    for how in (None, _playwrights_own, lambda: package("chromium")):
        if how is not None:
            tried.append(how())
        try:
            return find_chromium(_playwrights_place())
        except AnnotatorError as error:
            last = error
    raise AnnotatorError("\n".join([str(last), "Tried to get one, in vain:", *tried]))


def _playwrights_place() -> str:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _playwrights_own() -> str:
    return _try([sys.executable, "-P", "-m", "playwright", "install", "chromium"])


def package(name: str) -> str:
    """Installs a package of the distribution; returns what was run and how it ended."""
    sudo = [] if not hasattr(os, "geteuid") or os.geteuid() == 0 else ["sudo", "--non-interactive"]
    for program, *steps in (
        ("apt-get", ["update"], ["install", "--yes", "--no-install-recommends", name]),
        ("dnf", ["install", "--assumeyes", name]),
        ("apk", ["add", name]),
        ("pacman", ["-Sy", "--noconfirm", name]),
    ):
        if shutil.which(program):
            return "; ".join(_try([*sudo, program, *step]) for step in steps)
    return "no package manager that is known here"


def _try(command: list[str]) -> str:
    """Runs it; returns what was run and how it ended."""
    print("Getting what the tests need:", " ".join(command), flush=True)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=MINUTES * 60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"    {' '.join(command)}: {error}"
    return f"    {' '.join(command)}: exit status {done.returncode}"


if __name__ == "__main__":
    try:
        print("Browser for the tests:", get_chromium())
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")
