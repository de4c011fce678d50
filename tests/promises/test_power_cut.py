"""Power cuts: a recorded session is cut off after every step, and what a disk then holds is opened."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import CLASSES, draw
from harness.child_processes import build_environment
from harness.feature_shards import add_features
from harness.power_cut import cut_power, record
from harness.power_cut_limits import SHARE, WHY_NOT
from safetensors.numpy import load_file

from annotator.exchange.project_setup import set_up_project
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.image_map import save_map
from annotator.snapshot.run_predictions import load_rankings, read_predictions
from annotator.store.database.database import Database
from annotator.store.labels import audits
from annotator.store.runs import runs
from annotator.store.upkeep import consistency

SESSION = Path(__file__).resolve().parents[1].joinpath("harness", "power_cut_session.py")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A project as it was before a session, and the recording of that session: folder, trace."""
    folder = tmp_path_factory.mktemp("power")
    for number in range(60):
        names = tuple(name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1)
        size = (2000, 1500) if number == 0 else (64, 48)
        draw(folder / "photos" / f"{number:02}.jpg", names, seed=number, size=size)
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    disk = folder / "disk"
    (disk / "out").mkdir(parents=True)
    set_up_project(disk / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(disk / "project")
    ids = np.arange(1, 61)
    features = np.random.default_rng(0).normal(size=(60, 1280)).astype(np.float16)
    add_features(db, DEFAULT_BACKBONE, ids, features, np.repeat(features[:, None], 9, 1))
    save_map(db.paths.map(DEFAULT_BACKBONE), ids, np.random.default_rng(1).random((60, 2)))
    db.set_setting("method", "an")
    db.sql.conn.close()
    shutil.copytree(disk, folder / "before")
    words = [sys.executable, "-P", str(SESSION), str(disk / "project"), str(folder / "marks")]
    record(words, folder / "trace", env=build_environment(), timeout=600)
    return folder


def broken(project: Path, acknowledged: list[list[str]]) -> list[str]:
    """What was acknowledged and is not there, and what is there by halves."""
    db = Database(project)
    told = consistency.find_problems(db)
    stored = {row[0] for row in db.tuples("SELECT uuid FROM decision")}
    stored |= {row[0] for row in db.tuples("SELECT batch FROM decision WHERE batch NOT NULL")}
    told += [
        f"decision {words[1]} is lost" for words in acknowledged if words[0] == "decision" and words[1] not in stored
    ]
    told += [f"the row of run {one} cannot be read" for one in runs.find_damaged_runs(db)]
    run = runs.load_current_run(db)
    if run is not None:
        found = read_predictions(db)
        if found is None or load_rankings(db, found) is None or runs.find_kept_run(db, run.id) is None:
            told.append(f"run {run.id}, version {run.version} is published without its arrays")
    told += audits.describe_damage(db)
    if ["audit"] in acknowledged and not audits.load_audits(db):
        told.append("the audit is lost")
    for words in acknowledged:
        if words[0] == "selection" and not (db.paths.selections / f"{words[1]}.npy").exists():
            told.append(f"selection {words[1]} is lost")
    db.sql.conn.close()
    return told + halves(project.parent, acknowledged)


def halves(root: Path, acknowledged: list[list[str]]) -> list[str]:
    """Files that have their name and not their content."""
    told = []
    for path in root.rglob("*"):
        if path.name.startswith(".") or path.is_dir():
            continue
        try:
            if path.suffix == ".npy":
                np.load(path, allow_pickle=False)
            elif path.suffix == ".safetensors":
                load_file(path)
            elif path.suffix == ".jpg":
                assert path.read_bytes().startswith(b"\xff\xd8") and path.read_bytes().endswith(b"\xff\xd9")
            elif path.suffix == ".csv":
                assert path.read_text().endswith("\n") and path.read_text().startswith("image,")
                assert path.stem.endswith((".provenance", ".notes")) or len(path.read_text().splitlines()) == 61
            elif path.name == "secret":
                assert len(path.read_text().strip("\0")) in (0, 64), path.read_bytes()
        except Exception as error:
            told.append(f"{path.relative_to(root)} is not whole: {error!r}")
    for words in acknowledged:
        if words[0] == "export" and not (root / "out" / words[1]).exists():
            told.append(f"the export {words[1]} is lost")
    return told


@pytest.mark.process
@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.slow
def test_power_cut_keeps_acknowledged_data_and_complete_arrays(recording, tmp_path):
    cuts = 0
    for place, marks, arrived in cut_power(recording, tmp_path, SHARE):
        cuts, acknowledged = cuts + 1, [line.split() for line in marks]
        told = broken(place / "project", acknowledged)
        assert not told, (cuts, len(acknowledged), arrived, told)
    assert cuts > 400 * SHARE and sum(words[0] == "decision" for words in acknowledged) > 30
