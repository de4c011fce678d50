"""Exports of pairs on which people differ and which nobody has settled."""

import csv

import pytest
from harness.blind_answers import name_of, say

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import prepare_export, write_export
from annotator.exchange.formats.export_view import TableColumns
from annotator.quality import disagreement_resolution
from annotator.quality.first_answers import FirstAnswers
from annotator.records import Decision
from annotator.store.labels import decisions, image_overlap

PRESENT, ABSENT = 1, -1


@pytest.fixture
def db(db):
    """On image 1 Ann alone sees the second class, and Ben and Cid the third; image 2 is a draw between two."""
    image_overlap.set_overlap(db, 3, 1.0)
    for who, present in (("Ann", (1, 2)), ("Ben", (1, 3)), ("Cid", (1, 3))):
        say(db, 1, who, present)
    say(db, 2, "Ann", (1,))
    say(db, 2, "Ben", ())
    return db


def exported(db, tmp_path, **chosen) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Image, class -> state, source, person, of what has an answer."""
    choices = Choices(columns=TableColumns(long=True), **chosen)
    target = tmp_path / "labels.csv"
    with prepare_export(db, target, "csv", choices, overwrite=True) as ready:
        write_export(ready)
    with target.open(newline="", encoding="utf-8") as file:
        return {
            (row["image"], row["class"]): (row["state"], row["source"], row["annotator"])
            for row in csv.DictReader(file)
            if row["state"] not in ("", "unknown")
        }


def test_disagreement_rules_keep_leave_out_or_vote_on_the_conflicting_labels(db):
    assert disagreement_resolution.resolve_cells(db, "label") == {}
    assert disagreement_resolution.resolve_cells(db, "leave-out") == {(1, 2): None, (1, 3): None, (2, 1): None}
    assert disagreement_resolution.resolve_cells(db, "majority") == {(1, 2): ABSENT, (1, 3): PRESENT, (2, 1): None}
    with pytest.raises(AnnotatorError, match="most"):
        disagreement_resolution.resolve_cells(db, "most")


def test_resolved_label_no_longer_counts_as_a_disagreement(db):
    assert not decisions.save(db, [Decision("s", "label", "Rita", "settlement", 1, 2, PRESENT)]).refused
    assert (1, 2) not in disagreement_resolution.resolve_cells(db, "majority")


def test_estimate_rule_resolves_disagreements_for_the_more_reliable_annotators(db):
    """Cid differs from all others all the time; where Ann and Ben agree against Cid they are believed."""
    for image_id in range(3, 20):
        for who in ("Ann", "Ben"):
            say(db, image_id, who, (1,) if image_id % 2 else (2,))
        say(db, image_id, "Cid", (2,) if image_id % 2 else (1,))
    found = disagreement_resolution.resolve_cells(db, "estimate")
    assert all(found[image_id, 1] == (PRESENT if image_id % 2 else ABSENT) for image_id in range(3, 20))
    assert found[2, 1] is None, "Ann and Ben alone differ: nobody knows which of them errs"


def test_incrementally_updated_first_answers_equal_newly_loaded_ones(db):
    kept = FirstAnswers([1, 2, 3])
    kept.refresh(db)
    before = kept.get_probability(1, 2)
    for image_id in range(3, 12):
        for who in ("Ann", "Ben", "Cid"):
            say(db, image_id, who, (1, 2) if who == "Ann" else (1,))
    say(db, 2, "Cid", (1,))
    decisions.undo(db, "Ben")
    kept.refresh(db)
    anew = FirstAnswers([1, 2, 3])
    anew.refresh(db)
    cells = [(image_id, class_id) for image_id in range(1, 12) for class_id in (1, 2, 3)]
    assert [kept.count_people(*cell) for cell in cells] == [anew.count_people(*cell) for cell in cells]
    assert anew.count_people(2, 1) == 3 and anew.count_people(11, 1) == 2, (
        "Cid came, Ben's answer to the last image went"
    )
    assert [kept.get_probability(*cell) for cell in cells] == pytest.approx(
        [anew.get_probability(*c) for c in cells], abs=0.05
    )
    assert kept.get_probability(1, 2) < before, "Ann alone has seen this class again and again"
    kept.refresh(db)
    assert kept.count_people(2, 1) == 3


def test_export_names_the_disagreement_rule_as_provenance(db, tmp_path):
    one, two = name_of(db, 1), name_of(db, 2)
    as_it_is = exported(db, tmp_path)
    assert as_it_is[one, "fox"][1:] == ("reading", "Ann") and len(as_it_is) == 6
    by_most = exported(db, tmp_path, differing="majority")
    changed = {cell: row for cell, row in by_most.items() if row != as_it_is[cell]}
    assert {row[1:] for row in changed.values()} == {("majority of people", "")}
    assert len(changed) == 2 and len(by_most) == 5 and {image for image, _ in changed} == {one}
    left = exported(db, tmp_path, differing="leave-out")
    assert len(left) == 3 and {row[1] for row in left.values()} == {"reading"}
    assert {image for image, _ in left} == {one, two}
