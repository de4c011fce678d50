"""At the end: what was acknowledged against what is stored, and whether everything that was announced is whole."""

from collections import Counter
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from annotator.benchmark.faults.people import Sent
from annotator.snapshot.predictions import damaged
from annotator.store import audits, consistency
from annotator.store.database import Database

TIED = b"annotator.benchmark.harness.tied"  # in the command line of every process that a benchmark starts
NAMED = 5  # broken promises of one kind that are told in full
COLUMNS = """d.uuid, d.action, d.image_id, d.class_id, d.state, d.annotator, d.batch, t.uuid AS undoes_uuid, t.batch AS
    undoes_batch"""


def decisions_broken(db: Database, sent: Sent) -> dict[str, list[str]]:
    """Every uuid that was sent against the table: what is lost, doubled, moved, in parts, or from nobody."""
    stored: dict[str, list[dict]] = {}
    for row in db.rows(f"SELECT {COLUMNS} FROM decision d LEFT JOIN decision t ON t.id = d.undoes ORDER BY d.id"):
        stored.setdefault(_sent_as(row), []).append(row)
    told: dict[str, list[str]] = {name: [] for name in ("lost", "doubled", "moved", "in_parts", "from_nobody")}
    for name, entry in sent.entries.items():
        rows = stored.pop(name, [])
        many = len(entry.get("cells", [0]))
        if not rows:
            if name in sent.acknowledged:
                told["lost"].append(str(entry))
        elif entry["action"] == "undo":
            if any(row["undoes_uuid"] and not _is_about(entry["undoes"], row) for row in rows):
                told["moved"].append(f"{entry}: {rows}")
        elif len(rows) != many:
            told["doubled" if len(rows) > many else "in_parts"].append(f"{entry}: {rows}")
        elif any(not _is_same(entry, number, row) for number, row in enumerate(rows)):
            told["moved"].append(f"{entry}: {rows}")
    told["from_nobody"] = [name for name, rows in stored.items() if rows[0]["annotator"] != "import"]
    return told


def tables_broken(db: Database) -> list[str]:
    """Tallies, labels, stages, annotator disagreements and foreign keys (store/consistency.py)."""
    return consistency.problems(db)


def files_broken(db: Database, exports: list[Path]) -> list[str]:
    """Arrays that are announced and not there, files that have their name and not their content, exports in parts."""
    told = [*damaged(db), *audits.damaged(db)]
    for path in db.paths.project.rglob("*"):
        try:
            if path.name.startswith(".") or not path.is_file():
                continue
            if path.suffix == ".npy":
                np.load(path, mmap_mode="r", allow_pickle=False)
            elif path.suffix == ".safetensors":
                with safe_open(path, framework="numpy") as file:
                    file.keys()
        except (OSError, ValueError, EOFError, SafetensorError) as error:
            told.append(f"{path.name}: {error}")
    images = db.value("SELECT count(*) FROM image")
    for path in exports:
        if path.exists() and len(path.read_text(encoding="utf-8").splitlines()) != images + 1:
            told.append(f"the export {path.name} has not {images + 1} lines")
    return told


def leftovers(project: Path, folders: list[Path]) -> list[str]:
    """What killed processes leave behind once a worker and an export have run to their ends after them."""
    told = [f"temporary file {path}" for folder in folders for path in folder.rglob(".*.part")]
    own = str(project).encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if own in words and b"annotator" in words and b"bench" not in words.replace(TIED, b""):
            told.append(f"process {place.parent.name}: {words.replace(bytes(1), b' ').decode(errors='replace')}")
    return told


def counted(told: dict[str, list[str]]) -> tuple[dict[str, int], list[str]]:
    """How many promises of each kind were broken, and the first of each in words."""
    words = [f"{kind}: {one[:1000]}" for kind, every in told.items() for one in every[:NAMED]]
    return dict(Counter({kind: len(every) for kind, every in told.items()})), words


def _sent_as(row: dict) -> str:
    """The uuid that the browser gave it: cells of a batch and steps of an undo have a number behind it."""
    return row["uuid"].partition(":")[0]


def _is_about(undoes: str, row: dict) -> bool:
    return undoes.removesuffix(":0") in (row["undoes_uuid"].partition(":")[0], row["undoes_batch"])


def _is_same(entry: dict, number: int, row: dict) -> bool:
    if entry["action"] == "batch":
        image, class_id, state, _ = entry["cells"][number]
        return (row["image_id"], row["class_id"], row["state"]) == (image, class_id, state) and (
            row["uuid"] == f"{entry['uuid']}:{number}" and row["annotator"] == entry["annotator"]
        )
    expected = (entry["action"], entry["image"], entry.get("class"), entry.get("state"), entry["annotator"])
    return (row["action"], row["image_id"], row["class_id"], row["state"], row["annotator"]) == expected
