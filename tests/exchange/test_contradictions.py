"""A source that says two things of one cell: refused with both places, whatever its layout."""

import shutil
from pathlib import Path

import pytest
from conftest import draw
from harness.named_images import bring, found, of_names
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel, Item
from annotator.store.database.database import Database
from annotator.store.imports import staged_cells
from annotator.store.imports.staged_names import NameRules, resolve_names
from annotator.store.imports.staging import Staging

TABLES = {  # a table, what is said of it
    "one-hot": (
        "image,fox,deer\na.jpg,1,0\na.jpg,0,1\nb.jpg,1,0\n",
        ["line 2: 'fox' is present on 'a.jpg', but absent on 'a.jpg' (line 3)",
         "line 3: 'deer' is present on 'a.jpg', but absent on 'a.jpg' (line 2)"],
    ),
    "one-hot with blanks": ("filename, fox, deer\na.jpg, 1, 0\na.jpg, 0, 1\n", ["'fox' is", "'deer' is"]),
    "all zero": (
        "image,fox,deer\na.jpg,0,0\nb.jpg,0,1\na.jpg,0,1\n",
        ["line 4: 'deer' is present on 'a.jpg', but absent on 'a.jpg' (line 2)"],
    ),
    "one row has a gap": (
        "image,fox,deer\na.jpg,1,\na.jpg,0,1\n",
        ["line 2: 'fox' is present on 'a.jpg', but absent on 'a.jpg' (line 3)"],
    ),
    "both have gaps": ("image,fox,deer\na.jpg,1,\na.jpg,0,\n", ["line 3: 'fox' is absent on 'a.jpg', but present"]),
    "long": ("image,class,state\na.jpg,fox,present\na.jpg,fox,absent\n", ["line 3: 'fox' is absent on 'a.jpg'"]),
    "three rows": (
        "image,fox\na.jpg,1\na.jpg,1\na.jpg,0\n",
        ["line 2: 'fox' is present on 'a.jpg', but absent on 'a.jpg' (line 4)"],
    ),
    "two names": (
        "image,fox\na.jpg,1\nphotos/a.jpg,0\n", ["line 3: 'photos/a.jpg' and 'a.jpg' (line 2) could both be the image"],
    ),
}  # fmt: skip
AGREEING = {  # a table, labels of the project
    "the same twice": ("image,fox,deer\na.jpg,1,0\na.jpg,1,0\n", {("a.jpg", "fox", 1), ("a.jpg", "deer", -1)}),
    "one row fills the gap of another": (
        "image,fox,deer\na.jpg,1,\na.jpg,,0\n", {("a.jpg", "fox", 1), ("a.jpg", "deer", -1)},
    ),
    "a whole row and a part of it": (
        "image,fox,deer\na.jpg,1,0\na.jpg,1,\na.jpg,,0\n", {("a.jpg", "fox", 1), ("a.jpg", "deer", -1)},
    ),
    "several rows of present classes": (
        "image,class\na.jpg,fox\na.jpg,deer\n", {("a.jpg", "fox", 1), ("a.jpg", "deer", 1)},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number, name in enumerate(("a.jpg", "b.jpg")):
        draw(folder / name, seed=number)
    return folder


def states(db: Database) -> set[tuple[str, str, int]]:
    return set(db.tuples(
        """SELECT i.name, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id
        JOIN class c ON c.id = l.class_id"""))  # fmt: skip


@over(kind=list(TABLES))
def test_import_refuses_a_table_that_contradicts_itself_and_names_both_lines(tmp_path_factory, drawn, kind):
    folder = tmp_path_factory.mktemp("table")
    text, said = TABLES[kind]
    (folder / "labels.csv").write_text(text)
    with pytest.raises(AnnotatorError) as refused:
        bring(folder / "project", folder / "labels.csv", images=drawn)
    lines = str(refused.value).splitlines()[1:]
    assert len(lines) == len(said) and all(one in line for one, line in zip(said, lines, strict=True))
    assert not (folder / "project" / "project.db").exists()


@over(kind=list(AGREEING))
def test_import_merges_rows_of_one_image_that_agree(tmp_path_factory, drawn, kind):
    folder = tmp_path_factory.mktemp("table")
    text, expected = AGREEING[kind]
    (folder / "labels.csv").write_text(text)
    bring(folder / "project", folder / "labels.csv", images=drawn)
    assert states(Database(folder / "project")) == expected


def test_import_reports_conflicting_labels_of_two_files_with_equal_content(tmp_path):
    for number, name in enumerate(("S1/a.jpg", "S2/c.jpg")):
        draw(tmp_path / "photos" / name, seed=number)
    shutil.copy(tmp_path / "photos/S1/a.jpg", tmp_path / "photos/S2/b.jpg")
    table = tmp_path / "labels.csv"
    table.write_text("image,fox\nS1/a.jpg,1\nS2/b.jpg,0\nS2/c.jpg,0\n")
    told = "line 2: 'fox' is present on 'S1/a.jpg', but absent on 'S2/b.jpg' (line 3), which is the same picture"
    with pytest.raises(AnnotatorError) as refused:
        bring(tmp_path / "project", table, images=tmp_path / "photos")
    assert told in str(refused.value)
    table.write_text("image,fox\nS1/a.jpg,1\nS2/b.jpg,1\nS2/c.jpg,0\n")
    bring(tmp_path / "project", table, images=tmp_path / "photos")
    assert {state for _, _, state in states(Database(tmp_path / "project"))} == {1, -1}


def test_image_copied_to_two_class_folders_gets_both_classes(tmp_path):
    for number, name in enumerate(("fox/a.jpg", "deer/c.jpg")):
        draw(tmp_path / "set" / name, seed=number)
    shutil.copy(tmp_path / "set/fox/a.jpg", tmp_path / "set/deer/a.jpg")
    bring(tmp_path / "project", tmp_path / "set", format="imagefolder")
    assert len(states(Database(tmp_path / "project"))) == 3


def of_items(db: Database, *items: Item, listed=("fox", "deer"), class_map=None) -> list[str]:
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add_classes([(name, "") for name in listed])
        staged.add(items)
        resolve_names(staged, db, NameRules(class_map or {}), problems.add)
        staged_cells.build(staged, db, problems.add)
    return problems.sentences


def whole(line: int, *present: str, state: int = 1, **facts) -> Item:
    """An item that names all that is present."""
    return Item("a.jpg", line, [ImportedLabel(name, state) for name in present], exhaustive=True, **facts)


def test_row_with_a_complete_class_list_conflicts_with_rows_that_add_a_class(tmp_path):
    db = of_names(tmp_path, "a.jpg")
    unsure = "line 3: 'deer' is unsure on 'a.jpg', but absent on 'a.jpg' (line 2)"
    assert of_items(db, whole(2, "fox"), Item("a.jpg", 3, [ImportedLabel("deer", 0)])) == [unsure]
    assert of_items(db, Item("a.jpg", 2, [ImportedLabel("deer", 1)]), whole(3)) == [
        "line 2: 'deer' is present on 'a.jpg', but absent on 'a.jpg' (line 3)"
    ]
    assert not of_items(db, whole(2, "fox"), Item("a.jpg", 3, [ImportedLabel("deer", -1)]))
    assert not of_items(db, whole(2, "fox"), whole(3, "fox"), Item("a.jpg", 4))


def test_sidecar_rows_and_assumed_labels_do_not_conflict_with_answered_rows(tmp_path):
    db = of_names(tmp_path, "a.jpg")
    beside = Item("a.jpg", 3, [ImportedLabel("deer", 1, "Ann", 9.0, "click")], answered=False)
    assert not of_items(db, whole(2, "fox"), beside)
    assert not of_items(db, whole(2, "fox"), Item("a.jpg", 3, [ImportedLabel("deer", 1, source="assumed")]))


def test_source_classes_merged_by_the_class_map_cause_no_label_conflict(tmp_path):
    db = of_names(tmp_path, "a.jpg")
    joined = {"red fox": "fox", "fox": "fox"}
    items = whole(2, "red fox"), whole(3, "fox")
    assert not of_items(db, *items, listed=("red fox", "fox"), class_map=joined)
    assert of_items(db, *items, listed=("red fox", "fox"))


def test_conflict_check_handles_20000_rows_of_one_image(tmp_path):
    db = of_names(tmp_path, "a.jpg")
    rows = [whole(line, "fox") for line in range(20_000)]
    assert not of_items(db, *rows)
    assert len(of_items(db, *rows, whole(99_999))) == 1


def test_ambiguous_image_names_are_reported_instead_of_label_conflicts(tmp_path):
    _, problems = found(of_names(tmp_path, "a.jpg"), "a.jpg", "A")
    assert len(problems) == 1 and "could both be the image 'a.jpg'" in problems[0]
