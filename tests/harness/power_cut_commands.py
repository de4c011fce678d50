"""Commands that change, copy and export a project, for a recording: python power_cut_commands.py DISK MARKS

What has ended well is written to MARKS, a line each: a word, and how many of it there are by then.
"""

import os
import shutil
import sys
from pathlib import Path

from benchmarks.faults.scenes.scene import save_decision

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.store.classes import class_changes, class_history
from annotator.store.database.database import Database
from annotator.store.networks import adapted_networks
from annotator.store.upkeep import backup, restoring
from harness.later_step import add_later_step

DISK, MARKS = Path(sys.argv[1]), Path(sys.argv[2])


def main() -> None:
    shutil._USE_CP_SENDFILE = False  # so that what is copied is seen in the recording
    marks = os.open(MARKS, os.O_WRONLY | os.O_CREAT)
    db = Database(DISK / "project")

    def done(word: str, count: int) -> None:
        os.write(marks, f"{word} {count}\n".encode())

    for count in (1, 2):
        save_decision(db, f"decided-{count}", image=count + 2)
        done("decision", count)
        export_data_set(db, DISK / "out" / "labels.csv", "csv")
        done("file", count)
        export_data_set(db, DISK / "out" / "set", "voc", Choices(images="resize", pixels=16), lossy=True)
        done("folder", count)
        backup.create_backup(DISK / "project", DISK / "kept")
        done("backup", count)
    restoring.restore(DISK / "kept", DISK / "again")
    done("restore", 1)
    class_changes.merge(db, "Ann", [2], 1, same=True)
    done("merge", 1)
    class_history.undo_change(db, "Ann")
    done("merge", 2)
    with add_later_step():
        Database(DISK / "older").close()
    done("upgrade", 1)
    adapted_networks.export(db, "made", DISK / "out" / "network")
    done("network", 1)


if __name__ == "__main__":
    main()
