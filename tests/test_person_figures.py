"""What `annotator people` says of each person."""

import csv
import json
import math

from test_annotator_disagreement import say

from annotator.quality.people import people


def test_a_careless_person_is_told_apart_and_changes_by_others_are_counted(db, project, annotator, tmp_path):
    assert "Nobody" in annotator("people", project).stdout
    for image_id in range(1, 13):
        say(db, "A+", "B+", "C-" if image_id <= 6 else "C+", image_id=image_id)
        say(db, "A-", "B-", "C-", image_id=image_id, class_id=2)
    say(db, "B+", image_id=1)
    ann, bob, cid = people(db)
    assert cid.classes[0].sensitivity.value < 0.8 < ann.classes[0].sensitivity.value
    assert math.isnan(cid.classes[1].sensitivity.value)  # nobody ever saw one
    assert (ann.compared, ann.same.value, cid.same.value) == (48, 0.875, 0.75)
    assert (ann.changed, ann.shared, bob.changed, cid.changed) == (5, 24, 5, 1)
    found = json.loads(annotator("people", project, "--json", "--csv", tmp_path / "p.csv").stdout)
    assert [row["name"] for row in found] == ["Ann", "Bob", "Cid"]
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert len(rows) == 6 and float(rows[4]["sensitivity_low"]) < 0.6


def test_without_evidence_there_is_no_figure(db, project, annotator):
    say(db, "A+", "I-")
    (ann,) = people(db)  # a file is not a person
    assert ann.answers == 1 and ann.compared == 0 and ann.classes == []
    assert annotator("people", project).stdout.count("nothing says how often") == 1
