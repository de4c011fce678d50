"""Workers in this process and in processes of their own."""

import subprocess
import sys

from annotator.store.database.database import Database
from annotator.worker.process import Worker


def train(db: Database) -> None:
    worker = Worker(db.paths.project)
    try:
        worker.train()
    finally:
        worker.close()


def find_near_duplicates(db: Database) -> None:
    """Have the worker measure what is not, and find twins."""
    worker = Worker(db.paths.project)
    try:
        while worker.appearance_measurer.measure_batch():
            pass
        worker.near_duplicate_finder.find_if_due()
        assert not worker.near_duplicate_finder.find_if_due(), "nothing has changed since"
    finally:
        worker.close()


def start(project, processes, *words) -> subprocess.Popen:
    log = (project / "worker-test.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "annotator", "worker", str(project), *words], stdout=log, stderr=log
    )
    processes.append(process)
    return process
