"""The end of a process from outside: by the end of its parent, and by signals."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

WATCHED = """
import sys, threading
from annotator.process_stop import watch_parent
watch_parent(lambda: print("asked", flush=True), {seconds}, exit_status=3)
print("ready", flush=True)
{then}
"""
SIGNALED = """
import signal, threading
from annotator.process_stop import stop_on_signals
stop = threading.Event()
with stop_on_signals(stop):
    for number in (signal.SIGTERM, signal.SIGTERM):
        signal.raise_signal(number)
    print(stop.is_set())
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted")
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""


def start(script: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_child_process_that_ignores_the_end_of_its_parent_is_forced_to_exit():
    with start(WATCHED.format(seconds=0, then="threading.Event().wait()")) as process:
        assert process.stdout and process.stdin and process.stdout.readline() == "ready\n"
        process.stdin.close()
        assert process.wait(60) == 3 and process.stdout.read() == "asked\n"


def test_child_process_watching_its_parent_exits_normally_with_its_own_status():
    with start(WATCHED.format(seconds=0, then="sys.exit(5)")) as process:
        assert process.wait(60) == 5 and process.stderr and process.stderr.read() == ""


def test_first_signal_requests_a_stop_and_only_a_later_ctrl_c_raises():
    with start(SIGNALED) as process:
        told, problems = process.communicate(timeout=60)
    assert (told.split(), problems, process.returncode) == (["True", "interrupted", "True"], "", 0)
