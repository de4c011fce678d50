"""A flag is a note to people: exports of labels are the same with it, one says it beside them."""

import json

from annotator.exchange.export import export
from annotator.records import Decision
from annotator.snapshot.status import status
from annotator.store import decisions, images


def flag(image_id: int, note: str) -> Decision:
    return Decision(f"flag-{image_id}-{note}", "flag", "Ann", "click", image_id, note=note)


def test_a_flag_is_said_in_json_lines_and_changes_no_label_in_any_format(db, tmp_path):
    decisions.decide(db, [Decision("one-label", "label", "Ann", "click", 1, 1, 1)])
    export(db, tmp_path / "before.csv", "csv")
    export(db, tmp_path / "before.jsonl", "jsonl")
    decisions.decide(db, [flag(1, "blurred"), flag(2, "odd"), flag(2, "")])
    export(db, tmp_path / "after.csv", "csv")
    export(db, tmp_path / "after.jsonl", "jsonl")
    assert (tmp_path / "after.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()
    before, after = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("before", "after")
    )
    name = images.images(db, [1])[1].name
    assert [row["image"] for row in after if "flag" in row] == [name]
    assert [row.pop("flag", None) for row in after].count("blurred") == 1
    assert after == before


def test_status_says_how_many_images_are_flagged(db):
    decisions.decide(db, [flag(1, "blurred"), flag(1, "blurred, and dark"), flag(2, "odd")])
    assert status(db)["flagged"] == 2
    assert status(db)["decisions"] == {"flag": 3}
    assert status(db)["images_without_decision"] == 24
