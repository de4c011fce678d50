"""Flags and comments are notes to people: exports of labels are the same with them, and say them beside the labels."""

import csv
import json

from annotator.exchange.exports.export_writer import export_data_set
from annotator.records import Decision
from annotator.snapshot.project_status import collect_status
from annotator.store.images import images
from annotator.store.labels import decisions


def flag(image_id: int, note: str) -> Decision:
    return Decision(f"flag-{image_id}-{note}", "flag", "Ann", "click", image_id, note=note)


def test_flag_appears_in_json_lines_and_changes_no_exported_label(db, tmp_path):
    decisions.save(db, [Decision("one-label", "label", "Ann", "click", 1, 1, 1)])
    export_data_set(db, tmp_path / "before.csv", "csv")
    export_data_set(db, tmp_path / "before.jsonl", "jsonl")
    decisions.save(db, [flag(1, "blurred"), flag(2, "odd"), flag(2, "")])
    export_data_set(db, tmp_path / "after.csv", "csv")
    export_data_set(db, tmp_path / "after.jsonl", "jsonl")
    assert (tmp_path / "after.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()
    before, after = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("before", "after")
    )
    name = images.load_images(db, [1])[1].name
    assert [row["image"] for row in after if "flag" in row] == [name]
    assert [row.pop("flag", None) for row in after].count("blurred") == 1
    assert {row.pop("flagged_by", None) for row in after} == {"Ann", None} and after[0].pop("flagged_at")
    assert after == before


def test_comments_are_exported_with_their_annotator_and_formulas_escaped(db, tmp_path):
    formula, lines = "=HYPERLINK(1)", 'two\nlines, "quoted"'
    comment = Decision("a-comment", "comment", "@Bob", "click", 2, note=formula)
    decisions.save(
        db, [flag(1, "old"), flag(1, lines), comment, Decision("two", "comment", "Ann", "click", 2, note="b")]
    )
    decisions.save(db, [Decision("gone", "comment", "Ann", "click", 3, note="taken back")])
    decisions.save(db, [Decision("undo-it", "undo", "Ann", "click", undoes="gone")])
    export_data_set(db, tmp_path / "labels.csv", "csv")
    export_data_set(db, tmp_path / "labels.jsonl", "jsonl")
    one, two = (images.load_images(db, [1, 2])[id_].name for id_ in (1, 2))
    with (tmp_path / "labels.notes.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["image", "kind", "note", "annotator", "written_at"]
    assert sorted(row[:4] for row in rows) == [
        [one, "flag", lines, "Ann"],
        [two, "comment", f"'{formula}", "'@Bob"],
        [two, "comment", "b", "Ann"],
    ]
    objects = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    noted = {each["image"]: each for each in objects if "flag" in each or "comments" in each}
    assert noted.keys() == {one, two} and noted[one]["flag"] == lines
    assert [(each["text"], each["annotator"]) for each in noted[two]["comments"]] == [(formula, "@Bob"), ("b", "Ann")]


def test_status_reports_the_number_of_flagged_images(db):
    decisions.save(db, [flag(1, "blurred"), flag(1, "blurred, and dark"), flag(2, "odd")])
    assert collect_status(db)["flagged"] == 2
    assert collect_status(db)["decisions"] == {"flag": 3}
    assert collect_status(db)["images_without_decision"] == 24
