"""`annotator import`: what people bring, previewed, stored and undone as one; what is wrong with it, named."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from harness.short_forms import mark_slow_after
from harness.tables import over
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.export_view import TableColumns
from annotator.exchange.formats.shared.label_table import read_table
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.imports.label_files import choose_format
from annotator.exchange.project_setup import add_folder
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database import statement_progress
from annotator.store.database.database import Database
from annotator.store.images.images import load_ids_by_name, load_missing_reasons
from annotator.store.imports import past_imports, unfinished_imports
from annotator.store.imports.staging import Staging
from annotator.store.labels import decisions, project_counts
from annotator.store.labels.comments import load_comments
from annotator.store.upkeep import consistency

SHAPES = {
    "long": "image,class,state,annotator,decided_at\n00.jpg,fox,present,Bob,2026-01-02T03:04:05+00:00\n"
            "00.jpg,heron,absent,,\n01.jpg,fox,unsure,,\n",
    "long without states": "filename;label\n00.jpg;fox\n01.jpg;heron\n",
    "listed": "image,labels,split\n00.jpg,fox|heron,train\n01.jpg,,val\n",
    "wide": "image,fox,heron,split\n00.jpg,1,0,train\n01.jpg,,NA,val\n02.jpg,0,1,val\n",
    "words": "file_name\tfox\theron\n00.jpg\tTrue\tfalse\n01.jpg\t\t1.0\n",
}  # fmt: skip
MEANT = {
    "long": {("00.jpg", "fox", 1), ("00.jpg", "heron", -1), ("01.jpg", "fox", 0)},
    "long without states": {("00.jpg", "fox", 1), ("01.jpg", "heron", 1)},
    "listed": {("00.jpg", "fox", 1), ("00.jpg", "heron", 1)},
    "wide": {("00.jpg", "fox", 1), ("00.jpg", "heron", -1), ("02.jpg", "fox", -1), ("02.jpg", "heron", 1)},
    "words": {("00.jpg", "fox", 1), ("00.jpg", "heron", -1), ("01.jpg", "heron", 1)},
}


def labels(db: Database) -> set[tuple[str, str, int]]:
    return set(db.tuples(
        """SELECT i.name, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id
        JOIN class c ON c.id = l.class_id"""))  # fmt: skip


def bring(project, source, **choices):
    with prepare_import(project, source, ImportOptions(**choices), "Ann") as plan:
        return plan, plan.apply()


@over(shape=list(SHAPES), encoding=["utf-8", "utf-8-sig", "utf-16"])
def test_table_reader_reads_exactly_the_labels_of_each_layout_and_encoding(tmp_path_factory, shape, encoding):
    path = tmp_path_factory.mktemp("table") / "labels.csv"
    path.write_text(SHAPES[shape], encoding=encoding)
    problems, found = Problems(), set()
    contents = read_table(path, problems, ReadingOptions())
    for item in contents.items:
        said = {given.class_name: given.state for given in item.labels}
        said |= {name: -1 for name, _ in contents.classes if item.exhaustive and name not in said}
        found |= {(item.image, name, state) for name, state in said.items()}
        assert item.attributes.get("split") in (None, "train", "val")
    assert found == MEANT[shape] and not problems.count
    assert choose_format(path, None)[0].name == ("tsv" if shape == "words" else "csv")


def test_import_creates_a_project_from_table_and_images_and_can_be_undone_and_repeated(annotator, tmp_path, photos):
    (tmp_path / "labels.csv").write_text(SHAPES["wide"] + "nobody.jpg,1,1,train\n")
    told = annotator("import", "new", "labels.csv", code=1).stderr
    assert "--images FOLDER" in told and not (tmp_path / "new").exists()
    (tmp_path / "none").mkdir()
    told = annotator("import", "new", "labels.csv", "--images", "none", "--yes", code=1).stderr
    assert "No image was found in" in told and not (tmp_path / "new").exists()
    said = annotator("import", "new", "labels.csv", "--images", photos, "--dry-run").stdout
    assert "Format: csv (a table with the columns image, fox, heron, split)" in said and "line 5: 'nobody.jpg'" in said
    assert not (tmp_path / "new").exists(), "a preview makes nothing"
    assert (
        "there is no terminal to ask on" in annotator("import", "new", "labels.csv", "--images", photos, code=1).stderr
    )
    assert not (tmp_path / "new").exists()
    said = annotator("import", "new", "labels.csv", "--images", photos, "--yes").stdout
    assert "24 images added" in said and "2 classes added" in said
    db = Database(tmp_path / "new")
    assert labels(db) == MEANT["wide"] and not consistency.find_problems(db)
    assert "Nothing was changed." in annotator("import", "new", "labels.csv").stdout, "it has nothing new"
    assert "taken back: 4 decisions, 24 images" in annotator("imports", "undo", "new", 1, "--yes").stdout
    assert labels(db) == set() and len(load_missing_reasons(db)) == 24 and classes.load_active_classes(db) == []
    done = json.loads(annotator("import", "new", "labels.csv", "--images", photos, "--yes", "--json").stdout)
    assert done["imported"]["images"] == 24 and [one["how"] for one in done["preview"]["classes"]] == ["restored"] * 2
    assert labels(db) == MEANT["wide"] and not load_missing_reasons(db)
    listed = annotator("imports", "new").stdout
    assert listed.count("labels.csv") == 2 and "taken back by" in listed


def test_import_keeps_conflicting_annotator_decisions_unless_conflicts_is_replace(project, tmp_path):
    db = Database(project)
    ids = load_ids_by_name(db)
    decisions.save(db, [Decision("ann-one", "label", "Ann", "click", ids["00.jpg"], 1, -1)])
    (tmp_path / "labels.csv").write_text(SHAPES["wide"])
    plan, _ = bring(project, tmp_path / "labels.csv")
    assert plan.preview.conflicts_with_people.examples == ["line 2: 'fox' is present on '00.jpg', but Ann says absent"]
    assert ("00.jpg", "fox", -1) in labels(db)
    plan, done = bring(project, tmp_path / "labels.csv", conflicts="replace")
    assert done.imported.replaced == 1 and ("00.jpg", "fox", 1) in labels(db)
    past_imports.undo(db, done.imported.id, "Ann")
    assert ("00.jpg", "fox", -1) in labels(db) and not consistency.find_problems(db)


def test_import_applies_the_class_map_and_refuses_a_contradictory_one(project, tmp_path):
    (tmp_path / "labels.csv").write_text("image,labels\n00.jpg,Reiher|noise\n")
    (tmp_path / "map.csv").write_text("source,class\nReiher,heron\nnoise,\nFuchs,fox\n")
    bring(project, tmp_path / "labels.csv", class_map=tmp_path / "map.csv", exhaustive=True)
    assert labels(Database(project)) == {("00.jpg", "heron", 1)}, "absent is said of the source's classes only"
    (tmp_path / "map.csv").write_text("Reiher,heron\nReiher,fox\n")
    with pytest.raises(AnnotatorError, match="line 2: 'Reiher' is 'fox', but 'heron' in line 1"):
        bring(project, tmp_path / "labels.csv", class_map=tmp_path / "map.csv")


def test_import_refuses_ambiguous_or_archived_classes_and_warns_of_class_map_typos(project, tmp_path, annotator):
    (tmp_path / "labels.csv").write_text("image,labels\n00.jpg,FOX\n01.jpg, Fox | Heron \n")
    with pytest.raises(AnnotatorError, match="'FOX' could be 'fox' or a class of its own, as the source has 'Fox'"):
        bring(project, tmp_path / "labels.csv")
    plan, _ = bring(project, tmp_path / "labels.csv", class_map={"FOX": "fox", "Fox": "fux", "Deer": "deer"})
    expected = {("00.jpg", "fox", 1), ("01.jpg", "fux", 1), ("01.jpg", "heron", 1)}
    assert labels(Database(project)) == expected
    assert [sentence.rpartition("names ")[2] for sentence in plan.preview.warnings[:2]] == [
        "'Deer', which is not in the source.", "the class 'fux', which is new.",
    ]  # fmt: skip
    (tmp_path / "labels.csv").write_text("image,labels\n00.jpg,FUX\n")
    bring(project, tmp_path / "labels.csv")
    assert labels(Database(project)) == {*expected, ("00.jpg", "fux", 1)}
    class_changes.archive(Database(project), "Ann", [3])
    (tmp_path / "labels.csv").write_text("image,labels\n02.jpg,deer\n")
    assert "deer: needs a choice" in annotator("import", "project", "labels.csv", "--dry-run").stdout
    refused = annotator("import", "project", "labels.csv", code=1).stderr
    assert "the class 'deer' is archived: restore it, or choose another (say what 'deer' is by a class map)" in refused


@pytest.mark.parametrize("kind", mark_slow_after(1, ["csv", "jsonl"]))
def test_reimported_export_keeps_labels_provenance_comments_and_flags(project, photos, tmp_path, kind):
    db = Database(project)
    ids = load_ids_by_name(db)
    decisions.save(db, [
        Decision("one-one", "label", "Ann", "click", ids["00.jpg"], 1, 1),
        Decision("two-two", "label", "Bob", "grid", ids["00.jpg"], 2, 0),
        Decision("three-3", "done", "Ann", "done", ids["01.jpg"]),
        Decision("four-44", "flag", "Ann", "click", ids["02.jpg"], note="=look"),
        Decision("five-55", "comment", "Bob", "click", ids["02.jpg"], note="a, \"b\"\nc"),
    ])  # fmt: skip
    export_data_set(db, tmp_path / f"out.{kind}", kind)
    bring(tmp_path / "second", tmp_path / f"out.{kind}", images=photos)
    back = Database(tmp_path / "second")
    assert labels(back) == labels(db) and len(labels(db)) == 5
    assert [class_.name for class_ in classes.load_active_classes(back)] == ["fox", "heron", "deer"]
    by = "SELECT o.source, o.annotator FROM origin o JOIN decision d ON d.id = o.decision_id WHERE d.action = 'label'"
    assert set(back.tuples(by)) == {("click", "Ann"), ("grid", "Bob"), ("done", "Ann")}
    for notes in (load_comments, project_counts.load_flagged_images):  # with who wrote them, and when
        assert notes(back) == [row | {"at": pytest.approx(row["at"], abs=1)} for row in notes(db)] != []
    export_data_set(back, tmp_path / f"third.{kind}", kind)
    bring(tmp_path / "fourth", tmp_path / f"third.{kind}", images=photos)
    assert set(Database(tmp_path / "fourth").tuples(by)) == set(back.tuples(by))
    assert load_comments(Database(tmp_path / "fourth")) == load_comments(back)
    card = (tmp_path / f"third.{kind}").with_name("third.card.md").read_text()
    assert "| Bob | grid | 1 |" in card
    assert not consistency.find_problems(back)


def test_import_prefers_an_edited_table_over_its_provenance_file(project, photos, tmp_path):
    db = Database(project)
    ids = load_ids_by_name(db)
    decisions.save(db, [
        Decision("one-one", "label", "Ann", "click", ids["00.jpg"], 1, 1),
        Decision("two-two", "done", "Ann", "done", ids["00.jpg"]),
        Decision("three-3", "label", "Ann", "click", ids["01.jpg"], 1, 1),
        Decision("four-44", "label", "Ann", "click", ids["01.jpg"], 2, 0),
    ])  # fmt: skip
    export_data_set(db, tmp_path / "out.csv", "csv")
    changed = (
        (tmp_path / "out.csv").read_text().replace("00.jpg,1,0,0", "00.jpg,0,1,0").replace("01.jpg,1,,", "01.jpg,0,,")
    )
    (tmp_path / "out.csv").write_text(changed)
    plan, _ = bring(tmp_path / "second", tmp_path / "out.csv", images=photos)
    second = Database(tmp_path / "second")
    assert labels(second) == {
        ("00.jpg", "fox", -1), ("00.jpg", "heron", 1), ("00.jpg", "deer", -1),
        ("01.jpg", "fox", -1), ("01.jpg", "heron", 0),
    }  # fmt: skip
    assert plan.preview.warnings[0].startswith("3 answers differ")
    origins = "SELECT count(*) FROM origin o JOIN label l ON l.decision_id = o.decision_id"
    assert second.value(origins) == 2, "what Ann did not say is not said to be hers"


def test_import_of_a_table_with_chosen_columns_skips_classes_only_in_its_provenance(project, photos, tmp_path):
    db = Database(project)
    ids = load_ids_by_name(db)
    decisions.save(db, [
        Decision("one-one", "label", "Ann", "click", ids["00.jpg"], 1, 1),
        Decision("three-3", "done", "Ann", "done", ids["01.jpg"]),
    ])  # fmt: skip
    some = TableColumns(chosen=(("image", "image"), ("fox", "fox")))
    export_data_set(db, tmp_path / "some.csv", "csv", Choices(columns=some))
    bring(tmp_path / "second", tmp_path / "some.csv", images=photos)
    assert labels(Database(tmp_path / "second")) == {("00.jpg", "fox", 1), ("01.jpg", "fox", -1)}


def test_import_of_the_projects_own_export_adds_no_images_and_no_answers(project, tmp_path):
    db = Database(project)
    (tmp_path / "labels.csv").write_text(SHAPES["wide"])
    bring(project, tmp_path / "labels.csv")
    for name in ("csv", "jsonl"):  # a folder is recognised by the file with labels in it
        (tmp_path / name).mkdir()
        export_data_set(db, tmp_path / name / f"labels.{name}", name)
        with prepare_import(project, tmp_path / name, ImportOptions(), "Ann") as plan:
            assert plan.format.name == name and not plan.has_changes
            assert {(one.name, one.answers) for one in plan.preview.classes} == {("fox", 2), ("heron", 2), ("deer", 0)}
    export_data_set(db, tmp_path / "data", "huggingface", Choices(images="copy"))
    files = db.value("SELECT count(*) FROM file")
    plan, done = bring(project, tmp_path / "data")
    assert (plan.preview.images_new.count, plan.preview.copies, plan.preview.images_known) == (0, 24, 24)
    assert plan.preview.answers_known == 4 and done.imported.answers == 0
    assert (db.value("SELECT count(*) FROM file"), db.value("SELECT count(*) FROM image")) == (files, 24)


def test_import_counts_swapped_file_names_as_moved_and_not_as_copies(project, photos):
    (photos / "01.jpg").rename(photos / "new.jpg")
    (photos / "00.jpg").rename(photos / "01.jpg")
    plan, done = bring(project, photos)
    assert plan.preview.copies == 0 and done.registered
    assert (done.registered.added, done.registered.moved, done.registered.missing) == (0, 2, [])


def test_import_of_an_image_folder_with_a_label_table_creates_a_project(tmp_path, photos):
    shutil.copytree(photos, tmp_path / "data")
    (tmp_path / "data" / "labels.csv").write_text(SHAPES["wide"])
    bring(tmp_path / "new", tmp_path / "data")
    assert labels(Database(tmp_path / "new")) == MEANT["wide"]


BAD = {
    "no text": (b"image,labels\n00.jpg,fox\xff\n", "Line 2 of .* byte 0xff"),
    "zero bytes": (b"image,labels\n00.jpg,\0\n", "line 2 holds a zero byte"),
    "half a letter": (b"\xff\xfei\0m\0a\0g", "no UTF-16"),
    "open quote": (b'image,labels\n00.jpg,"fox\n', "is no CSV in line"),
    "columns": (b"image,fox\n00.jpg,1\n01.jpg\n02.jpg,1,1\n", "line 3: 1 cells instead of 2(.|\n)*line 4: 3 cells"),
    "state": (b"image,class,state\n00.jpg,fox,maybe\n", "line 2: state 'maybe'"),
    "time": (b"image,class,state,decided_at\n00.jpg,fox,present,soon\n", "line 2: decided_at 'soon'"),
    "value": (b"image,fox\n" + b"00.jpg,1\n" * 1250 + b"01.jpg,seven\n", "line 1252: 'fox' is 'seven'"),
    "number": (b"image,fox\n" + b"00.jpg,1\n" * 250 + b"01.jpg,7\n", "'fox' are whole numbers, also 2 and more"),
    "two columns": (b"image,fox,fox\n00.jpg,1,0\n", "two columns called 'fox'"),
    "long line": (b"image,labels\n00.jpg," + b"x" * 5_000_000, "more than 4,194,304 letters"),
    "itself": (b"image,class,state\n00.jpg,fox,present\n00.jpg,fox,absent\n", "but present on '00.jpg'"),
    "nothing": (b"", "is empty"),
}
BAD_LINES = {
    "broken": (b'{"image": "00.jpg", "labels": {}}\n{"image": \n', "line 2: "),
    "nested": (b'{"image": "00.jpg", "labels": {}}\n{"image": "01.jpg", "labels": ' + b"[" * 9000, "line 2: "),
    "value": (b'{"image": "00.jpg", "labels": {"fox": 7}}\n', "line 1: the label 'fox' is 7"),
    "two truths": (
        b'{"image": "00.jpg", "labels": {"fox": 1}, "provenance": {"fox": {"state": "absent"}}}\n',
        "absent",
    ),
}


@pytest.mark.parametrize(
    ("kind", "what"), mark_slow_after(8, [("csv", what) for what in BAD] + [("jsonl", what) for what in BAD_LINES])
)
def test_import_errors_name_the_line_and_store_nothing(project, tmp_path, kind, what):
    content, expected = (BAD if kind == "csv" else BAD_LINES)[what]
    (tmp_path / f"labels.{kind}").write_bytes(content)
    with pytest.raises(AnnotatorError, match=expected):
        bring(project, tmp_path / f"labels.{kind}", format=kind)
    db = Database(project)
    assert labels(db) == set() and past_imports.load_imports(db) == [] and not list(project.glob("*.staging*"))


def test_import_refuses_unrecognized_json_and_names_the_line_of_invalid_json(project, tmp_path):
    for content, expected in (('{"images":\n [}', r"not JSON: b'}' in line 2"), ("{}", "not in a known format")):
        (tmp_path / "odd.json").write_text(content)
        with pytest.raises(AnnotatorError, match=expected):
            bring(project, tmp_path / "odd.json")


KILLED = """
import os, signal, sys
from pathlib import Path
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
def trace(statement):
    if sys.argv[3] in statement:
        os.kill(os.getpid(), signal.SIGKILL)
with prepare_import(Path(sys.argv[1]), Path(sys.argv[2]), ImportOptions(), "Ann") as plan:
    plan.db.sql.conn.set_trace_callback(trace)
    plan.apply()
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "step", mark_slow_after(2, ["INTO staged.change", "INTO decision", "CREATE TRIGGER", "UPDATE import"])
)
def test_killed_import_stores_nothing_and_the_next_import_stores_all_labels(project, tmp_path, step):
    (tmp_path / "labels.csv").write_text(SHAPES["wide"])
    words = [sys.executable, "-c", KILLED, project, tmp_path / "labels.csv", step]
    ended = subprocess.run(words, check=False, capture_output=True, env={**os.environ}).returncode
    assert ended == -signal.SIGKILL
    db = Database(project)
    assert (labels(db), past_imports.load_imports(db)) == (set(), [])
    assert not consistency.find_problems(db)
    bring(project, tmp_path / "labels.csv")
    assert labels(db) == MEANT["wide"] and not list(project.glob("*.staging*"))


class Stop(Exception):
    """Somebody has pressed Stop."""


@pytest.mark.slow
def test_import_stopped_at_any_step_leaves_the_project_unchanged(project, tmp_path, monkeypatch):
    monkeypatch.setattr(statement_progress, "INSTRUCTIONS_PER_CALL", 40)
    wild, db, left = tmp_path / "wild", Database(project), 0
    for name in ("fox", "owl"):
        (wild / name).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (9, 9), (ord(name[0]), number, 7)).save(wild / name / f"{number}.png")

    def stop(what: str, done: int, of: int) -> None:
        nonlocal left
        steps.append(what)
        left -= 1
        if left == 0:
            raise Stop

    def asked() -> tuple:
        shown = db.tuples("SELECT id, name, stage FROM image WHERE problem = '' ORDER BY id")
        return (
            shown,
            labels(db),
            past_imports.load_imports(db),
            classes.load_active_classes(db),
            list(project.glob("*staging*")),
        )

    before, calls = asked(), 0
    for tried in range(100):
        steps: list[str] = []
        left = calls = calls + 1 + tried * 4  # sooner and later, in every step
        try:
            with prepare_import(project, wild, ImportOptions(), "Ann", stop) as plan:
                plan.apply(stop)
        except Stop:
            assert asked() == before
            continue
        break
    assert tried > 9 and plan.is_stored
    assert {"Reading", "Matching names", "Counting what would change", "Reading images", "Storing"} == set(steps)
    assert len(labels(db)) == 4 and len(asked()[0]) == 28 and not consistency.find_problems(db)
    assert past_imports.undo(db, plan.done.imported.id, "Ann").images == 4, (
        "those that an earlier attempt had read, too"
    )


def test_recovery_marks_images_of_a_killed_import_missing_unless_an_import_is_running(project, tmp_path):
    db = Database(project)
    unfinished_imports.begin(db, [tmp_path / "wild"])
    (tmp_path / "wild").mkdir()
    Image.new("RGB", (9, 9)).save(tmp_path / "wild" / "a.png")
    add_folder(db, tmp_path / "wild")
    (project / "import-1-dead.staging").touch()
    with Staging(project, print):
        unfinished_imports.recover(db)
        assert not load_missing_reasons(db), "an import is running"
    unfinished_imports.recover(db)
    assert list(load_missing_reasons(db).values()) == ["taken back with import that was not finished"]
    assert not list(project.glob("*.staging*"))


def test_decision_saved_during_an_import_is_stored_after_it(project, tmp_path):
    (tmp_path / "labels.csv").write_text(SHAPES["wide"])
    answers: list[threading.Thread] = []

    def answer() -> None:
        decisions.save(Database(project), [Decision("ann-one", "label", "Ann", "click", 5, 1, 1)])

    def trace(statement: str) -> None:
        if "INSERT INTO label" in statement and not answers:  # in the middle of the transaction
            answers.append(threading.Thread(target=answer))
            answers[0].start()

    with prepare_import(project, tmp_path / "labels.csv", ImportOptions(), "Bob") as plan:
        plan.db.sql.conn.set_trace_callback(trace)
        plan.apply()
        plan.db.sql.conn.set_trace_callback(None)
    answers[0].join(60)
    db = Database(project)
    assert len(labels(db)) == len(MEANT["wide"]) + 1 and not consistency.find_problems(db)
