"""Runs the tests that failed in the last run once more, each alone, for CI on a loaded machine.

    python tests/run_failed_again.py        # after a run of pytest that ended with status 1

A test that passes alone is named in a line `FLAKY: ...`, to be mended at its cause. The exit status is 1 when a test
fails again, when more than MOST were flaky since the cache was new, or when the run did not end by failed tests alone.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 3  # flaky tests of all runs together; with more, something else is wrong
CACHE = Path(".pytest_cache/v")
FAILED, STATUS, FLAKY = CACHE / "cache/lastfailed", CACHE / "run/status", CACHE / "run/flaky"
TESTS_FAILED = 1  # pytest's status when all tests ran and some failed


def pytest_sessionfinish(session: object, exitstatus: int) -> None:
    """Keep how the run ended: conftest.py hands this on to pytest, whose own cache only has the names."""
    cache = getattr(session.config, "cache", None)  # none where a test is run again
    if cache and not hasattr(session.config, "workerinput"):
        cache.set("run/status", int(exitstatus))


def main() -> int:
    """Return the exit status: 0 when all failed tests pass alone."""
    failed = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
    status = json.loads(STATUS.read_text()) if STATUS.exists() else None
    if not failed or status != TESTS_FAILED:
        print(f"No test is run again: pytest ended with status {status} and names {len(failed)} failed tests.")
        print(f"Only failed tests (status {TESTS_FAILED}) are run again: see the output of pytest above.")
        return 1
    known = json.loads(FLAKY.read_text()) if FLAKY.exists() else []
    if len(failed) + len(known) > MOST:
        for name in failed:
            print(f"FAILED: {name}")
        print(f"{len(failed)} tests failed and {len(known)} were flaky before; {MOST} at most are run again.")
        return 1
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    again = [name for name in failed if subprocess.run([*words, name], check=False).returncode]
    flaky = [name for name in failed if name not in again]
    for name in flaky:
        print(f"FLAKY: {name}")
    for name in again:
        print(f"FAILED AGAIN: {name}")
    print(f"{len(flaky)} of {len(failed)} failed tests passed alone; ", end="")
    print(f"{MOST} flaky tests are allowed, {len(known)} were before.")
    FLAKY.write_text(json.dumps(known + flaky))
    FAILED.unlink()
    return 1 if again else 0


if __name__ == "__main__":
    sys.exit(main())
