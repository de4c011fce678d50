"""Label files inside archives are read as beside images in a folder."""

import zipfile
from pathlib import Path

import pytest
from harness.class_pictures import CLASSES, EXPECTED, PICTURES, cells
from openpyxl import Workbook

from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.label_files import LABEL_FILE_SUFFIXES
from annotator.exchange.sources.fetch_folder import is_wanted_file

DATABASE_SUFFIXES = {".db", ".sqlite"}  # which no format reads: an import only mentions them


def write_workbook(path: Path) -> Path:
    book = Workbook()
    book.active.append(["image", "label"])
    for number in range(len(PICTURES)):
        book.active.append([f"{number}.png", CLASSES[number % 2]])
    book.save(path)
    return path


@pytest.mark.parametrize("name", ["labels.xlsx", "labels.xlsm", "sheets/labels.XLSX"])
def test_workbook_in_a_zip_is_read_as_its_labels(annotator, tmp_path, name):
    book = write_workbook(tmp_path / "labels.xlsx")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number, content in enumerate(PICTURES):
            archive.writestr(f"{number}.png", content)
        archive.writestr(name, book.read_bytes())
    annotator("import", "p", tmp_path / "a.zip", "--yes")
    assert cells(tmp_path / "p") == EXPECTED


def test_archives_unpack_every_kind_of_label_file_that_a_folder_is_searched_for():
    endings = {format_.ending for format_ in FORMATS.values() if format_.read and format_.ending}
    missing = {ending for ending in endings | set(LABEL_FILE_SUFFIXES) if not is_wanted_file(f"a{ending}")}
    assert missing == DATABASE_SUFFIXES
