"""Darwin Core Archives: tables that meta.xml describes, joined by the id of the occurrence."""

import random
from pathlib import Path

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.darwin_core import DARWIN_CORE
from annotator.exchange.imports.label_files import match_formats
from annotator.exchange.reading.reading_options import ReadingOptions

TERMS = "http://rs.tdwg.org/dwc/terms/"
CORE_ROWS = [
    {"id": "1", "scientificName": 'Vulpes "vulpes"', "taxonRank": "SPECIES"},
    {"id": "2", "scientificName": "Strix aluco", "occurrenceStatus": "ABSENT"},
    {"id": "3", "scientificName": "Dama dama", "identificationQualifier": "cf."},
]
MEDIA_ROWS = [
    {"coreid": "1", "identifier": "https://example.org/p/a.jpg", "type": "StillImage"},
    {"coreid": "1", "identifier": "https://example.org/p/b.jpg", "format": "image/jpeg"},
    {"coreid": "1", "identifier": "https://example.org/p/a.mp3", "type": "Sound"},
    {"coreid": "2", "identifier": "https://example.org/p/c.jpg", "type": "StillImage"},
    {"coreid": "3", "identifier": "https://example.org/p/d.jpg", "type": "StillImage"},
    {"coreid": "9", "identifier": "https://example.org/p/e.jpg", "type": "StillImage"},
]


def describe_table(tag: str, row_type: str, file: str, columns: list[str]) -> str:
    key = "id" if tag == "core" else "coreid"
    fields = [f'<field index="{place}" term="{TERMS}{name}"/>' for place, name in enumerate(columns) if name != key]
    return (
        f'<{tag} encoding="UTF-8" fieldsTerminatedBy="\\t" fieldsEnclosedBy="" ignoreHeaderLines="1" '
        f'rowType="{row_type}"><files><location>{file}</location></files><{key} index="{columns.index(key)}"/>'
        f"{''.join(fields)}</{tag}>"
    )


def write_archive(
    folder: Path,
    core: list[dict[str, str]],
    media: list[dict[str, str]],
    row_type: str = f"{TERMS}Occurrence",
    seed: int = 0,
) -> Path:
    """Write an archive whose columns are in a random order."""
    parts = []
    tables = [("core", row_type, "occurrence.txt", core)]
    tables += [("extension", "http://rs.gbif.org/terms/1.0/Multimedia", "multimedia.txt", media)] if media else []
    for tag, kind, file, rows in tables:
        columns = sorted({name for row in rows for name in row})
        random.Random(seed).shuffle(columns)
        lines = [columns, *([row.get(name, "") for name in columns] for row in rows)]
        (folder / file).write_text("".join("\t".join(line) + "\n" for line in lines))
        parts.append(describe_table(tag, kind, file, columns))
    archive = f'<archive xmlns="http://rs.tdwg.org/dwc/text/" metadata="metadata.xml">{"".join(parts)}</archive>'
    (folder / "meta.xml").write_text(archive)
    return folder


def read_archive(folder: Path) -> tuple[dict[str, dict[str, int]], Contents]:
    problems = Problems()
    assert DARWIN_CORE.read and [one.name for one, _ in match_formats(folder)] == ["darwin-core"]
    contents = DARWIN_CORE.read(folder, problems, ReadingOptions())
    labels = {item.image: {given.class_name: given.state for given in item.labels} for item in contents.items}
    assert not problems.sentences
    return labels, contents


@pytest.mark.parametrize("seed", range(3))
def test_images_get_the_names_of_their_occurrences_for_any_order_of_columns(seed: int, tmp_path: Path) -> None:
    labels, contents = read_archive(write_archive(tmp_path, CORE_ROWS, MEDIA_ROWS, seed=seed))
    fox = {'Vulpes "vulpes"': 1}
    assert labels == {"p/a.jpg": fox, "p/b.jpg": fox, "p/c.jpg": {}, "p/d.jpg": {"Dama dama": 0}}
    assert contents.sentences[1:] == [
        "Not read: 1 medium is not a still image (first: https://example.org/p/a.mp3).",
        "Not read: 1 occurrence is absent (first: 2).",
        "Not read: 1 image belongs to no occurrence (first: https://example.org/p/e.jpg).",
    ]


def test_associated_media_and_names_in_two_columns_are_read(tmp_path: Path) -> None:
    row = {"id": "1", "genus": "Dama", "specificEpithet": "dama", "associatedMedia": "p/a.jpg | p/b.jpg"}
    labels, _ = read_archive(write_archive(tmp_path, [row, {"id": "2", "genus": "Dama"}], []))
    assert labels == {"p/a.jpg": {"Dama dama": 1}, "p/b.jpg": {"Dama dama": 1}}


def test_number_as_a_scientific_name_is_a_question(tmp_path: Path) -> None:
    _, contents = read_archive(write_archive(tmp_path, [{"id": "1", "scientificName": "2435099"}], MEDIA_ROWS))
    assert [one.value for one in contents.interpretations] == ["2435099"]


@pytest.mark.parametrize(
    ("media", "row_type", "reason"),
    [([], f"{TERMS}Occurrence", "no image is named"), (MEDIA_ROWS, f"{TERMS}Event", "a core of event rows")],
)
def test_archive_without_images_of_occurrences_is_refused(
    media: list[dict[str, str]], row_type: str, reason: str, tmp_path: Path
) -> None:
    write_archive(tmp_path, [CORE_ROWS[0]], media, row_type)
    with pytest.raises(AnnotatorError, match=reason):
        read_archive(tmp_path)


def test_damaged_description_and_missing_table_are_named(tmp_path: Path) -> None:
    write_archive(tmp_path, CORE_ROWS, MEDIA_ROWS)
    text = (tmp_path / "meta.xml").read_text()
    (tmp_path / "meta.xml").write_text(text.replace("multimedia.txt", "../multimedia.txt"))
    problems = Problems()
    assert DARWIN_CORE.read
    DARWIN_CORE.read(tmp_path, problems, ReadingOptions())
    assert "meta.xml names '../multimedia.txt', which is not in" in problems.sentences[0]
    for damaged in (text[:-20], text.replace('index="0"', 'index="x"'), '<!DOCTYPE a [<!ENTITY b "c">]>' + text):
        (tmp_path / "meta.xml").write_text(damaged)
        with pytest.raises(AnnotatorError, match="cannot be read as a description"):
            DARWIN_CORE.read(tmp_path, Problems(), ReadingOptions())
