"""SIGTERM ends the app and its worker in time, whatever hangs."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from filelock import FileLock
from harness.served import Served, until
from harness.short_forms import mark_slow_after
from harness.stalled import stalled

from annotator.exchange.project_setup import set_up_project
from annotator.store.database import heartbeat
from annotator.store.database.database import Database

LONG_ENOUGH = 30  # seconds: six times what is promised, two thirds of what the stalled disk takes

HANGS = """
import signal, sys, threading, time
from annotator.ui.serving.shutdown import Shutdown
ending = Shutdown()
ending.add_step(lambda: print("first", flush=True))
ending.add_step(lambda: 1 / 0)
ending.add_step(lambda: print("second", flush=True))
if "step" in sys.argv:
    ending.add_step(threading.Event().wait)
threading.Thread(target=threading.Event().wait).start()  # not a daemon: Python waits for it
with ending.handle_signals():
    print("ready", flush=True)
    while "main" in sys.argv:
        time.sleep(1)
    signal.raise_signal(signal.SIGTERM)
    ending.run_steps()
"""


@pytest.mark.parametrize("hangs", mark_slow_after(1, ["thread", "main", "step"]))
def test_hanging_process_still_runs_its_shutdown_steps_once_and_ends_after_sigterm(hangs, processes):
    words = [sys.executable, "-P", "-c", HANGS, hangs]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    processes.append(process)
    assert process.stdout.readline() == "ready\n"
    if hangs == "main":
        process.terminate()
    assert process.wait(LONG_ENOUGH) == 128 + signal.SIGTERM
    assert process.stdout.read() == "first\nsecond\n"


@pytest.mark.slow
@pytest.mark.process
def test_sigterm_ends_the_app_and_workers_that_read_from_a_stalled_disk(project, photos, processes, tmp_path):
    db = Database(project)
    others = shutil.copytree(photos, tmp_path / "others")
    set_up_project(tmp_path / "another", images_folder=others)
    with (
        stalled([*photos.glob("*.jpg"), *photos.glob("deep/*.png")]) as waited_for,
        stalled([*others.glob("*.jpg"), *others.glob("deep/*.png")]) as waited_for_alone,
    ):
        alone = subprocess.Popen([sys.executable, "-P", "-m", "annotator", "worker", str(tmp_path / "another")])
        processes.append(alone)
        served = Served(project, processes)
        askers = [threading.Thread(target=_ask, args=[served, number], daemon=True) for number in range(1, 8)]
        for asker in askers:
            asker.start()
        until(lambda: len(waited_for()) == len(askers))
        until(lambda: len(waited_for()) > len(askers))  # by the worker
        until(waited_for_alone)
        worker = heartbeat.load_worker_state(db).pid
        alone.terminate()
        served.process.terminate()
        served.process.wait(LONG_ENOUGH)
        until(lambda: not _runs(worker), LONG_ENOUGH)
        alone.wait(LONG_ENOUGH)
    with FileLock(db.paths.server_lock, timeout=60), FileLock(db.paths.worker_lock, timeout=60):
        pass  # the next start has the project for itself


def _ask(served: Served, image_id: int) -> None:
    with contextlib.suppress(OSError):  # the app has ended
        served.get(f"/api/image/{image_id}")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
