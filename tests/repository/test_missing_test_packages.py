"""What `python -m pytest` says where the packages of the test extra are not installed."""

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import needed
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TESTS = Path(__file__).resolve().parents[1]
HIDE = "import sys\nsys.modules |= dict.fromkeys(['joserfc', 'playwright'])"  # as if they were not installed


@pytest.mark.process
def test_pytest_without_the_test_extra_prints_one_line_with_the_install_command(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/store/test_percent_format.py"],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = "The tests need more (joserfc, playwright): pip install -e models -e '.[test]' (or: make test)\n"
    assert (done.returncode, done.stderr, done.stdout) == (needed.USAGE_ERROR, said, "")


def test_test_extra_list_equals_the_extra_packages_imported_by_test_modules():
    """Of the program's own dependencies a few stand for all: `pip install` brings all of them or none."""
    imported = set()
    for path in [*TESTS.glob("*.py"), *TESTS.glob("*/*.py")]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    tables = [
        tomllib.loads((TESTS.parent / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (".", "models")
    ]
    of_the_program = _with_what_they_need(
        [line for table in tables for line in (*table["dependencies"], *table["optional-dependencies"]["train"])]
    )
    beyond = {
        name
        for name in imported & distributions.keys()
        if name != "pytest" and not of_the_program & {canonicalize_name(each) for each in distributions[name]}
    }
    beyond -= {path.stem for path in TESTS.parent.iterdir()}  # the project's own packages
    assert beyond == set(needed.OF_THE_TEST_EXTRA)


def _with_what_they_need(requirements: list[str]) -> set[str]:
    todo, names = [Requirement(each) for each in requirements], set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in names or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        names.add(name)
        try:
            todo += map(Requirement, requires(name) or [])
        except PackageNotFoundError:
            continue
    return names
