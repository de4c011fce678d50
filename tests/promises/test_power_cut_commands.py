"""Power cuts while a project is merged, backed up, restored, upgraded and exported: nothing of it, or all."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.faults.scenes.scene import SCENE_IMAGES, make_project, read_database_copy
from harness.adaptable import pretend_adapted
from harness.child_processes import build_environment
from harness.later_step import add_later_step
from harness.power_cut import cut_power, record
from harness.power_cut_limits import SHARE, WHY_NOT

from annotator.exchange.exports import destination
from annotator.store.classes import class_history
from annotator.store.database.database import Database
from annotator.store.database.files_together import finish_renaming
from annotator.store.pictures.files import compute_sha256
from annotator.store.schema import STEP_NAMES
from annotator.store.upkeep import consistency, restoring

COMMANDS = Path(__file__).resolve().parents[1].joinpath("harness", "power_cut_commands.py")
WEIGHTS = "weights " * 1000


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A disk as it was before the commands, and the recording of them: folder, trace."""
    folder = tmp_path_factory.mktemp("commands")
    make_project(folder)
    disk = folder / "disk"
    (disk / "out").mkdir(parents=True)
    (disk / "older").mkdir()
    shutil.copy(folder / "project" / "project.db", disk / "older")  # which lacks a step that the commands know
    db = Database(folder / "project")
    pretend_adapted(db, "made", "parent", np.arange(1, 5))
    (db.paths.adapted_network("made") / "model.safetensors").write_text(WEIGHTS)
    db.close()
    shutil.move(folder / "project", disk / "project")
    Database(disk / "project").close()
    shutil.copytree(disk, folder / "before")
    words = [sys.executable, "-P", str(COMMANDS), str(disk), str(folder / "marks")]
    environment = build_environment({"PYTHONDONTWRITEBYTECODE": "1"})
    record(words, folder / "trace", env=environment, timeout=600)
    return folder


def broken(disk: Path, done: dict[str, int]) -> list[str]:
    """What had ended well and is not there, and what is there by halves."""
    told = []
    db = Database(disk / "project")
    told += consistency.find_problems(db)
    if db.value("SELECT count(*) FROM decision WHERE uuid LIKE 'decided-%'") < done.get("decision", 0):
        told.append("a decision is lost")
    changes = sum(change.kind in ("merge", "undo") for change in class_history.load_changes(db))
    told += ["a merge is lost"] if changes < done.get("merge", 0) else []
    db.close()
    return told + _exports(disk / "out", done) + _backups(disk, done) + _upgrade(disk / "older", done)


def _exports(out: Path, done: dict[str, int]) -> list[str]:
    finish_renaming(out / "labels.csv")  # as the next export does
    files = sorted(out.glob("labels.*"), key=lambda path: path.name.endswith(".card.json"))
    told = destination.find_problems(files, False) if files else []
    folder = out / "set"
    if folder.exists():
        told += _folder(folder)
    for word, path in (
        ("file", out / "labels.csv"),
        ("folder", folder / "data_card.json"),
        ("network", out / "network"),
    ):
        told += [f"the export {path.name} is lost"] if done.get(word) and not path.exists() else []
    network = out / "network"
    if network.exists() and (network / "model.safetensors").read_text() != WEIGHTS:
        told.append("the network is not whole")
    return told


def _folder(folder: Path) -> list[str]:
    """By what its files hold: times are not kept by the model of a disk."""
    card = json.loads((folder / "data_card.json").read_text())
    told = [name for name, digest in card["written"].items() if compute_sha256(folder / name) != digest]
    pictures = list(folder.rglob("*.jpg"))
    for path in pictures:
        assert path.read_bytes().endswith(b"\xff\xd9"), path
    return told + ([] if len(pictures) == SCENE_IMAGES else [f"{len(pictures)} images"])


def _backups(disk: Path, done: dict[str, int]) -> list[str]:
    kept = restoring.list_manifests(disk / "kept")
    told = ["a backup is lost"] if len(kept) < done.get("backup", 0) else []
    for number, manifest in enumerate(kept, start=1):
        restoring.restore(disk / "kept", disk / f"restored{number}", manifest.stem)
        db = Database(disk / f"restored{number}")
        decided = db.value("SELECT count(*) FROM decision WHERE uuid LIKE 'decided-%'")
        told += [
            *consistency.find_problems(db),
            *([] if decided == number else [f"backup {number} has {decided} of it"]),
        ]
        db.close()
    if (disk / "again").exists():
        db = Database(disk / "again")
        told += consistency.find_problems(db)
        db.close()
    elif done.get("restore"):
        told.append("what was restored is lost")
    return told


def _upgrade(older: Path, done: dict[str, int]) -> list[str]:
    found = read_database_copy(older / "project.db")
    told = ["the upgrade is lost"] if done.get("upgrade") and len(found["steps"]) == len(STEP_NAMES) else []
    copies = [read_database_copy(path) for path in (older / "copies").glob("*.db")]
    if len(found["steps"]) > len(STEP_NAMES) and not copies:
        told.append("it was upgraded and the copy from before is lost")
    told += ["a copy is of another project" for copy in copies if copy["decisions"] != found["decisions"]]
    with add_later_step():
        db = Database(older)
        told += consistency.find_problems(db)
        db.close()
    return told


@pytest.mark.process
@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.slow
def test_power_cut_leaves_backups_exports_and_upgrades_complete_or_absent(recording, tmp_path):
    cuts = 0
    for place, marks, arrived in cut_power(recording, tmp_path, SHARE):
        cuts, done = cuts + 1, {word: int(count) for word, count in map(str.split, marks)}
        told = broken(place, done)
        assert not told, (cuts, done, arrived, told)
    assert done == {
        "decision": 2, "file": 2, "folder": 2, "backup": 2, "restore": 1, "merge": 2, "upgrade": 1, "network": 1
    }  # fmt: skip
    assert cuts > 40
