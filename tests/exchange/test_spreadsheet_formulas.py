"""Every CSV that the program writes, with names that a spreadsheet would run: no cell is a formula."""

import csv
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import draw

from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.files.csv_cells import decode_name, escape_formula, format_csv, unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS
from annotator.exchange.formats.imagefolder import IMAGEFOLDER
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.project_setup import set_up_project
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.people import members

# OWASP, "CSV Injection"; the full-width forms are formulas to spreadsheets in Japanese, Chinese and Korean.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
CLASSES = ("=HYPERLINK(1)", "+1", "-b", "@c", "＝d", "＋e", "－f", "＠g", "'=h", "fox")
FILES = tuple(f"{mark}{number}.jpg" for number, mark in enumerate(("=", "+", "@", "＝", "-d/-", "a")))
ANN, BEN, KEY, VALUE, NOTE = "=Ann()", "－Ben", "=key", "@value", "\n=note"


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Database:
    folder = tmp_path_factory.mktemp("formulas")
    for number, name in enumerate(FILES):
        draw(folder / "photos" / name, ("fox",), seed=number)
    (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    (folder / "-facts.csv").write_text(format_csv([("image", "labels", KEY), *((name, "", VALUE) for name in FILES)]))
    with prepare_import(
        folder / "project", folder / "-facts.csv", ImportOptions(reading=ReadingOptions(class_columns=())), ANN
    ) as plan:
        plan.apply()
    db = Database(folder / "project")
    said = [
        Decision(str(uuid.uuid4()), "label", who, "audit", image, class_, state)
        for who in (ANN, BEN)
        for image in range(1, 7)
        for class_ in range(1, 11)
        if (state := 1 if (image + class_ + len(who)) % 3 else -1)
    ]
    said += [Decision(str(uuid.uuid4()), "comment", BEN, "click", image, note=NOTE) for image in (1, 2)]
    assert not decisions.save(db, said).refused
    members.add(db, ANN, "owner", BEN)
    return db


@pytest.fixture(scope="module")
def written(db, tmp_path_factory) -> Path:
    """A folder with every export that has a CSV."""
    folder = tmp_path_factory.mktemp("written")
    for format_ in FORMATS.values():
        if format_.write is not None:
            export_data_set(db, folder / f"{format_.name}{format_.ending}", format_.name, lossy=True)
    return folder


def texts_in(rows: list[list[str]]) -> Iterator[str]:
    for row in rows:
        yield from map(unescape_formula, row)


def test_escaped_text_never_starts_a_formula_and_unescapes_to_the_original():
    for text in (*CLASSES, *FILES, ANN, BEN, KEY, VALUE, NOTE, "''-", "'a", "", "a=b"):
        assert not escape_formula(text).startswith(FORMULA) and unescape_formula(escape_formula(text)) == text
        assert decode_name(escape_formula(text), {text}) == decode_name(text, {text}) == text
    assert format_csv([[-0.5, -3, "-0.5"]]) == "-0.5,-3,'-0.5\n"


def test_exported_csv_files_contain_no_formula_cells(written):
    files = [path for path in written.rglob("*") if path.suffix in (".csv", ".tsv")]
    kinds = {path.name for path in files}
    assert {"csv.csv", "csv.provenance.csv", "csv.notes.csv", "openimages.csv", "classes.csv"} <= kinds
    assert "openimages.class-descriptions.csv" in kinds and "provenance.csv" in kinds
    found = [
        (path.relative_to(written), cell)
        for path in files
        for row in cells(path)
        for cell in row
        if cell.startswith(FORMULA) and not is_number(cell)
    ]
    assert not found
    assert set(texts_in(cells(written / "csv.csv"))) >= {*CLASSES, *FILES}
    assert set(texts_in(cells(written / "csv.provenance.csv"))) >= {*CLASSES, *FILES, BEN}
    assert set(texts_in(cells(written / "csv.notes.csv"))) >= {NOTE, VALUE, BEN}
    assert set(texts_in(cells(written / "yolo-cls" / "classes.csv"))) >= {*CLASSES}
    read = IMAGEFOLDER.read(written / "yolo-cls", Problems(), ReadingOptions())
    assert {label.class_name for item in read.items for label in item.labels} <= {*CLASSES}


def test_csv_reports_contain_no_formulas_and_store_figures_as_numbers(db, tmp_path, annotator):
    project = db.paths.project
    for words in (("people",), ("agreement",), ("members", "log")):
        annotator(*words, project, "--csv", tmp_path / f"{words[-1]}.csv")
    export_data_set(db, tmp_path / "x.csv", "csv", tag="=v1", by=ANN)
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", ANN, "click", 1, 1, 0)])
    annotator("diff", project, "=v1", "--csv", tmp_path / "diff.csv")
    tables = {name: cells(tmp_path / f"{name}.csv") for name in ("people", "agreement", "log", "diff")}
    for name, rows in tables.items():
        assert len(rows) > 1, name
        assert not [cell for row in rows for cell in row if cell.startswith(FORMULA) and not is_number(cell)], name
    assert set(texts_in(tables["people"])) >= {ANN, BEN, *CLASSES} and set(texts_in(tables["agreement"])) >= {ANN, BEN}
    head, *rows = tables["agreement"]
    alphas = [row[head.index("alpha")] for row in rows if row[head.index("by")] == "class"]
    assert all(map(is_number, filter(None, alphas))) and any(alpha.startswith("-") for alpha in alphas), alphas
