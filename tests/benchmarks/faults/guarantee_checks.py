"""Compare what was acknowledged with what is stored, and check that every file that a table names is complete."""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from annotator.snapshot.run_predictions import describe_damaged_runs
from annotator.store.database.database import Database
from annotator.store.labels import audits
from annotator.store.upkeep import consistency
from benchmarks.faults.simulated_pages import SentDecisions

# in the command line of every process that a benchmark starts
TIED_MODULE = b"harness.child_runner"
REPORTED_CASES = 5  # broken guarantees of one kind that are reported in full
DECISION_COLUMNS = """d.uuid, d.action, d.image_id, d.class_id, d.state, d.annotator, d.batch, t.uuid AS undoes_uuid,
    t.batch AS
    undoes_batch"""


def find_broken_decisions(db: Database, sent: SentDecisions) -> dict[str, list[str]]:
    """Return decisions that are lost, doubled, changed (moved), incomplete (in_parts), or never sent (from_nobody)."""
    stored: dict[str, list[dict]] = {}
    for row in db.rows(
        f"SELECT {DECISION_COLUMNS} FROM decision d LEFT JOIN decision t ON t.id = d.undoes ORDER BY d.id"
    ):
        stored.setdefault(_get_sent_uuid(row), []).append(row)
    broken: dict[str, list[str]] = {kind: [] for kind in ("lost", "doubled", "moved", "in_parts", "from_nobody")}
    for uuid, entry in sent.entries.items():
        rows = stored.pop(uuid, [])
        count = len(entry.get("cells", [0]))
        if not rows:
            if uuid in sent.acknowledged:
                broken["lost"].append(str(entry))
        elif entry["action"] == "undo":
            if any(row["undoes_uuid"] and not _is_about(entry["undoes"], row) for row in rows):
                broken["moved"].append(f"{entry}: {rows}")
        elif len(rows) != count:
            broken["doubled" if len(rows) > count else "in_parts"].append(f"{entry}: {rows}")
        elif any(not _is_same(entry, number, row) for number, row in enumerate(rows)):
            broken["moved"].append(f"{entry}: {rows}")
    broken["from_nobody"] = [uuid for uuid, rows in stored.items() if rows[0]["annotator"] != "import"]
    return broken


def find_broken_tables(db: Database) -> list[str]:
    """Return contradictions of tallies, labels, stages, disagreements and foreign keys (upkeep/consistency.py)."""
    return consistency.find_problems(db)


def find_broken_files(db: Database, exports: list[Path]) -> list[str]:
    """Return arrays that a table names and that do not exist, files that cannot be read, and incomplete exports."""
    broken = [*describe_damaged_runs(db), *audits.describe_damage(db)]
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
            broken.append(f"{path.name}: {error}")
    images = db.value("SELECT count(*) FROM image")
    for path in exports:
        if path.exists() and len(path.read_text(encoding="utf-8").splitlines()) != images + 1:
            broken.append(f"the export {path.name} has not {images + 1} lines")
    return broken


def find_leftovers(project: Path, folders: list[Path]) -> list[str]:
    """Return temporary files and processes that remain after a worker and an export have ended normally."""
    broken = [f"temporary file {path}" for folder in folders for path in folder.rglob(".*.part")]
    own = str(project).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if own in command and b"annotator" in command and b"bench" not in command.replace(TIED_MODULE, b""):
            broken.append(f"process {path.parent.name}: {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return broken


def count_broken(broken: dict[str, list[str]]) -> tuple[dict[str, int], list[str]]:
    """Return the number of broken guarantees of each kind, and sentences on the first REPORTED_CASES of each kind."""
    sentences = [f"{kind}: {each[:1000]}" for kind, cases in broken.items() for each in cases[:REPORTED_CASES]]
    return {kind: len(cases) for kind, cases in broken.items()}, sentences


def _get_sent_uuid(row: dict) -> str:
    """Return the uuid that the browser sent; the rows of a batch and of an undo have a number appended."""
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
