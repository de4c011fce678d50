"""Random decisions of every kind, and the tallies that triggers keep of them."""

import random
import uuid

from annotator.records import SOURCES, Batch, Decision

SHOWN = ("suggestion", "grid", "audit", "random", "exploration")


def counted(db) -> dict[tuple, int]:
    """Every tally, counted one by one."""
    found: dict[tuple, int] = {}

    def count(kind: str, one: object, two: object = "") -> None:
        found[kind, one, two] = found.get((kind, one, two), 0) + 1

    for row in db.rows("SELECT stage FROM image"):
        count("stage", row["stage"])
    for row in db.rows("SELECT class_id, state FROM label"):
        count("label", row["class_id"], row["state"])
    rows = db.rows("SELECT * FROM decision")
    undone = {row["undoes"] for row in rows}
    for row in rows:
        if row["action"] == "undo" or row["id"] in undone:
            continue
        kind = row["action"] if row["action"] in ("skip", "flag") else row["source"]
        count("source", kind)
        if row["action"] in ("label", "done"):
            count("annotator", row["annotator"])
        if SOURCES[row["source"]].chosen_by != "file":
            count("hour", int(row["decided_at"] // 3600), kind)
        if row["action"] == "label" and row["source"] in SHOWN and row["score"] is not None:
            count("score", min(19, int(row["score"] * 20)), row["state"])
            if row["run_id"] is not None:
                count("run", row["run_id"], row["state"])
    return found


def kept(db) -> dict[tuple, int]:
    rows = db.rows("SELECT kind, one, two, n FROM tally WHERE n != 0")
    return {(row["kind"], row["one"], row["two"]): row["n"] for row in rows}


def anything(chance: random.Random, given: list[str]) -> Decision | Batch:
    """A decision such as pages, imports and browsers' repeats send; some of them make no sense."""
    shared = {"uuid": str(uuid.UUID(int=chance.getrandbits(128))), "annotator": chance.choice(["Ann", "Bob", "5"])}
    image, state = chance.randint(1, 25), chance.choice([1, -1, 0])
    run, score = chance.choice([None, 1, 2]), chance.choice([None, 0.0, 0.05, 0.3, 0.999, 1.0])
    kind = chance.choice(["label", "label", "shown", "batch", "done", "skip", "flag", "undo", "undo", "import"])
    if kind == "batch":
        cells = [(chance.randint(1, 24), chance.randint(1, 4), state, score) for _ in range(chance.randint(1, 6))]
        return Batch(**shared, source="grid", cells=cells, run_id=run, milliseconds=900)
    if kind == "undo":
        undoes = chance.choice([None, *given[-30:]])
        return Decision(**shared, action="undo", source="click", undoes=undoes)
    if kind in ("done", "skip", "flag"):
        return Decision(**shared, action=kind, source="click", image_id=image, note=chance.choice(["", "odd"]))
    asked = chance.choice(["click", "relabel", "settlement"])
    source = {"label": asked, "shown": chance.choice(SHOWN), "import": "import"}[kind]
    return Decision(
        **shared,
        action="label",
        source=source,
        image_id=image,
        class_id=chance.randint(1, 4),
        state=state,
        run_id=run,
        score=score,
    )
