"""Workbooks of LibreOffice (.ods): values, repeated cells, hidden sheets, merged cells and second tables."""

import zipfile
from pathlib import Path

import pytest
from harness.opendocument import format_row, format_sheet, format_text_cell, write_workbook

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.opendocument import OPENDOCUMENT
from annotator.exchange.imports.label_files import match_formats
from annotator.exchange.reading.reading_options import ReadingOptions

HEADER = format_row("image", "label")


def read_workbook(path: Path) -> tuple[list[tuple[str, list[str]]], list[str], list[str]]:
    """Return (image, classes) per item, the problems and the sentences."""
    problems = Problems()
    assert OPENDOCUMENT.read and [one.name for one, _ in match_formats(path)] == ["opendocument"]
    contents = OPENDOCUMENT.read(path, problems, ReadingOptions())
    items = [(item.image, [given.class_name for given in item.labels]) for item in contents.items]
    return items, list(problems.sentences), list(contents.sentences)


def test_visible_sheet_is_read_and_the_hidden_one_is_named(tmp_path: Path) -> None:
    hidden = format_sheet("last year", [HEADER, format_row("old.jpg", "fox")], style="ta2")
    shown = format_sheet("now", [format_row("Season 2024"), HEADER, format_row("a.jpg", "red  fox")])
    items, problems, sentences = read_workbook(write_workbook(tmp_path / "labels.ods", hidden, shown))
    assert (items, problems) == ([("a.jpg", ["red  fox"])], [])
    assert sentences[:2] == [
        "the sheet 'now' is read",
        "sheets that are not read: 'last year' (hidden). Save each as a file of its own",
    ]


def test_repeated_cells_numbers_and_comments_are_read_as_shown(tmp_path: Path) -> None:
    header = format_row("image", "fox", "owl", "deer")
    ones = '<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="2"/>'
    note = "<office:annotation><text:p>not sure</text:p></office:annotation>"
    text = '<text:p>a<text:s text:c="2"/>b.jpg</text:p>'
    name = f'<table:table-cell office:value-type="string">{note}{text}</table:table-cell>'
    zero = '<table:table-cell office:value-type="float" office:value="0"/>'
    rows = [header, f"<table:table-row>{name}{ones}{zero}</table:table-row>"]
    path = write_workbook(tmp_path / "labels.ods", format_sheet("now", rows))
    assert OPENDOCUMENT.read
    options = ReadingOptions(class_columns=("fox", "owl", "deer"))
    (item,) = OPENDOCUMENT.read(path, Problems(), options).items
    assert item.image == "a  b.jpg"
    assert [given.class_name for given in item.labels] == ["fox", "owl"] and item.exhaustive


def test_merged_cells_below_the_header_are_a_problem(tmp_path: Path) -> None:
    merged = format_text_cell("fox", 'table:number-rows-spanned="2" table:number-columns-spanned="1"')
    covered = "<table:covered-table-cell/>"
    title = format_row(format_text_cell("Season", 'table:number-columns-spanned="2" table:number-rows-spanned="1"'))
    rows = [title, HEADER, format_row("a.jpg", merged), format_row("b.jpg", covered)]
    (problem,) = read_workbook(write_workbook(tmp_path / "labels.ods", format_sheet("now", rows)))[1]
    assert "row 3: the cells of row 3 from column 2 on are merged" in problem


def test_second_table_below_an_empty_row_is_a_problem(tmp_path: Path) -> None:
    rows = [HEADER, format_row("a.jpg", "fox"), format_row(), HEADER, format_row("b.jpg", "blurred")]
    items, (problem,), _ = read_workbook(write_workbook(tmp_path / "labels.ods", format_sheet("now", rows)))
    assert items == [("a.jpg", ["fox"])] and "row 4: a second table begins here" in problem


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            f'<table:table-row table:number-rows-repeated="999999">{format_text_cell("a.jpg")}</table:table-row>',
            "repeats",
        ),
        (format_row(format_text_cell("a.jpg", 'table:number-columns-repeated="999999"')), "more than 16,384 cells"),
        (format_row("<text:span>" * 100 + "</text:span>" * 100), "nested more than"),
        ("<table:table-row>", "cannot be read to its end"),
    ],
)
def test_hostile_workbook_is_refused_with_the_reason(row: str, reason: str, tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "labels.ods", format_sheet("now", [HEADER, format_row("a.jpg", "fox"), row]))
    with pytest.raises(AnnotatorError, match=reason):
        read_workbook(path)


def test_workbook_with_entities_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "labels.ods", format_sheet("now", [HEADER]))
    content = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
    with pytest.raises(AnnotatorError, match="declares entities"):
        read_workbook(path)
