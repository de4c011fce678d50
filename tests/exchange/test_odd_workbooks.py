"""Workbooks that people made by hand: hidden sheets, merged cells, and a second table below the first."""

import zipfile

import pytest
from openpyxl import Workbook

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.excel import EXCEL
from annotator.exchange.reading.reading_options import ReadingOptions


def write_sheet(sheet, rows):
    for row in rows:
        sheet.append(row)


def read_workbook(path):
    """Return the images, the problems and the sentences."""
    problems = Problems()
    contents = EXCEL.read(path, problems, ReadingOptions())
    return [item.image for item in contents.items], list(problems.sentences), list(contents.sentences)


def test_visible_sheet_is_read_and_the_others_are_named(tmp_path):
    book = Workbook()
    write_sheet(book.active, [["image", "label"], ["old.jpg", "fox"]])
    book.active.title, book.active.sheet_state = "last year", "hidden"
    write_sheet(book.create_sheet("now"), [["image", "label"], ["a.jpg", "fox"]])
    write_sheet(book.create_sheet("empty"), [["image", "label"]])
    book.save(tmp_path / "labels.xlsx")
    images, problems, sentences = read_workbook(tmp_path / "labels.xlsx")
    assert (images, problems) == (["a.jpg"], [])
    assert sentences[:2] == [
        "the sheet 'now' is read",
        "sheets that are not read: 'last year' (hidden). Save each as a file of its own",
    ]


def test_merged_cells_below_the_header_are_refused_and_those_above_it_are_not(tmp_path):
    book = Workbook()
    write_sheet(book.active, [["Season 2024"], ["image", "label"], ["a.jpg", "fox"], ["b.jpg", None]])
    book.active.merge_cells("A1:B1")
    book.save(tmp_path / "title.xlsx")
    assert read_workbook(tmp_path / "title.xlsx")[1] == []
    book.active.merge_cells("B3:B4")
    book.save(tmp_path / "labels.xlsx")
    (problem,) = read_workbook(tmp_path / "labels.xlsx")[1]
    assert "row 3: the cells B3:B4 are merged" in problem and "Unmerge" in problem


def test_second_table_below_an_empty_row_is_refused(tmp_path):
    book = Workbook()
    first, second = [["image", "label"], ["a.jpg", "fox"]], [["image", "label"], ["b.jpg", "blurred"]]
    write_sheet(book.active, [*first, [], ["b.jpg", "deer"], [], *second])
    book.save(tmp_path / "labels.xlsx")
    images, (problem,), _ = read_workbook(tmp_path / "labels.xlsx")
    assert images == ["a.jpg", "b.jpg"] and "row 6: a second table begins here" in problem


def test_workbook_that_is_damaged_behind_its_first_rows_is_refused(tmp_path):
    book = Workbook()
    write_sheet(book.active, [["image", "label"], *([f"{number}.jpg", f"fox {number}"] for number in range(5_000))])
    book.save(tmp_path / "labels.xlsx")
    with zipfile.ZipFile(tmp_path / "labels.xlsx") as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml")
    content = bytearray((tmp_path / "labels.xlsx").read_bytes())
    end = sheet.header_offset + sheet.compress_size
    content[end - 400 : end - 300] = bytes(100)
    (tmp_path / "labels.xlsx").write_bytes(content)
    with pytest.raises(AnnotatorError, match="cannot be read to its end"):
        read_workbook(tmp_path / "labels.xlsx")
