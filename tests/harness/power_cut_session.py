"""An hour of work in some seconds, for a recording: python power_cut_session.py PROJECT MARKS

A real server with its worker, a person who labels, takes back, flags and answers grids, and commands beside them.
What is acknowledged is written to MARKS, a line each: "decision UUID", "export PATH", "audit", "selection ID".
"""

import os
import subprocess
import sys
import uuid
from pathlib import Path

from annotator.store.database.database import Database
from annotator.store.runs import runs
from harness.served import Served, until

PROJECT, MARKS = Path(sys.argv[1]), Path(sys.argv[2])


class Session:
    def __init__(self):
        self.marks = os.open(MARKS, os.O_WRONLY | os.O_CREAT)
        self.processes: list[subprocess.Popen] = []
        self.served = Served(PROJECT, self.processes)

    def acknowledge(self, *words: object) -> None:
        os.write(self.marks, f"{' '.join(map(str, words))}\n".encode())

    def decide(self, *given: dict) -> None:
        sent = [{"uuid": str(uuid.uuid4()), "source": "click", **one} for one in given]
        answer = self.served.post("/api/decisions", {"decisions": sent})
        assert not answer["refused"], answer
        for one in answer["saved"]:
            self.acknowledge("decision", one)

    def label(self, count: int) -> None:
        """Images from the queue, each with a label; some are taken back, given up or flagged."""
        wanted = {"mode": "annotate", "holder": "session", "have": [], "want": 2}
        for number in range(count):
            image = self.served.post("/api/work", wanted)["items"][0]["id"]
            self.decide({"action": "label", "image": image, "class": 1 + number % 3, "state": 1})
            if number % 5 == 4:
                self.decide({"action": "undo"}, {"action": "flag", "image": image, "note": "odd"})
                self.decide({"action": "label", "image": image, "class": 2, "state": 1})
            if number % 7 == 6:
                self.decide({"action": "done", "image": image, "source": "done"})

    def answer_grid(self) -> None:
        wanted = {"holder": "grids", "class": 1, "size": 4, "have": [], "want": 1}
        for grid in self.served.post("/api/grid", wanted)["items"]:
            cells = [[tile["id"], grid["class"], -1, tile["probability"]] for tile in grid["tiles"]]
            self.decide({"action": "batch", "cells": cells, "run": grid["run"], "milliseconds": 900, "source": "grid"})

    def command(self, *words: object) -> None:
        subprocess.run(
            [sys.executable, "-P", "-m", "annotator", *map(str, words)], check=True, stdout=subprocess.DEVNULL
        )


def main() -> None:
    session = Session()
    try:
        work(session, session.served, Database(PROJECT))
    finally:
        session.served.process.terminate()
        session.served.process.wait(120)


def work(session: Session, served: Served, db: Database) -> None:
    session.label(22)
    session.command("export", PROJECT, PROJECT.parent / "out" / "labels.csv")
    session.acknowledge("export", "labels.csv")
    served.get("/api/image/1")
    served.get("/api/thumb/1")
    until(lambda: runs.load_current_run(db))
    session.answer_grid()
    until(lambda: runs.load_current_run(db).version > 0)
    session.command("audit", PROJECT)
    session.acknowledge("audit")
    answer = served.post("/api/map/select", {"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]]})
    session.acknowledge("selection", answer["selection"])
    session.answer_grid()
    first = runs.load_current_run(db).id
    served.post("/api/decisions", {"decisions": []})
    session.command("train", PROJECT)
    until(lambda: runs.load_current_run(db).id > first)
    session.command("export", PROJECT, PROJECT.parent / "out" / "again.csv")
    session.acknowledge("export", "again.csv")
    session.answer_grid()


if __name__ == "__main__":
    main()
