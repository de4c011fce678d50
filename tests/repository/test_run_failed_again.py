"""Failed tests are run once more alone, and only few may be flaky."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.short_forms import mark_slow_after

SCRIPT = Path(__file__).resolve().parents[1].joinpath("run_failed_again.py")
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_passes_the_second_time(number):
    mark = Path(f"met-{{number}}")
    met = mark.exists()
    mark.touch()
    assert met
"""
WRONG = "\n\ndef test_is_wrong():\n    assert False\n"


def run_twice(folder: Path, tests: str) -> subprocess.CompletedProcess:
    """Run pytest on these tests, which fail, and then what failed again."""
    (folder / "conftest.py").write_text("from run_failed_again import pytest_sessionfinish\n")
    (folder / "test_some.py").write_text(tests)
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2"]
    subprocess.run(words, cwd=folder, env=environment, check=False, capture_output=True)
    return subprocess.run(
        [sys.executable, SCRIPT], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


@pytest.mark.slow
@pytest.mark.process
def test_failed_test_that_passes_alone_is_reported_as_flaky(tmp_path):
    again = run_twice(tmp_path, FLAKY.format(count=2))
    assert again.returncode == 0, again.stdout
    assert again.stdout.count("FLAKY: test_some.py::test_passes_the_second_time[") == 2
    assert again.stdout.endswith("2 of 2 failed tests passed alone; 3 flaky tests are allowed, 0 were before.\n")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("tests", "says"),
    mark_slow_after(
        1,
        [
            (FLAKY.format(count=1) + WRONG, "FAILED AGAIN: test_some.py::test_is_wrong"),
            (FLAKY.format(count=4), "4 tests failed and 0 were flaky before; 3 at most are run again."),
            ("import no_such_module\n", "FAILED AGAIN: test_some.py"),
            ("", "pytest ended with status 5"),
        ],
    ),
    ids=["one fails again", "too many", "a module is missing", "no tests"],
)
def test_pytest_run_fails_when_failures_repeat_on_rerun_or_exceed_the_rerun_limit(tmp_path, tests, says):
    again = run_twice(tmp_path, tests)
    assert again.returncode == 1
    assert says in again.stdout


@pytest.mark.slow
@pytest.mark.process
def test_flaky_test_report_adds_up_the_flaky_tests_of_two_runs(tmp_path):
    assert run_twice(tmp_path, FLAKY.format(count=2)).returncode == 0
    for mark in tmp_path.glob("met-*"):
        mark.unlink()
    assert "2 tests failed and 2 were flaky before" in run_twice(tmp_path, FLAKY.format(count=2)).stdout
