"""Keywords as exiftool and exiv2 write and read them: theirs are read by us, and ours by them."""

import json
import subprocess

import pytest
from conftest import draw
from get_photo_tools import get_photo_tool
from harness.formats_view import all_cells, assert_same, cells_of, view_of, write

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.keywords import KEYWORDS, read, recognize
from annotator.exchange.reading.reading_options import ReadingOptions

pytestmark = [pytest.mark.readers, pytest.mark.process]

NAMES = ["fox", "mill & <weir>", "\u05e8\u05e2\u05d1", "F\xfcchse", "A|B"]
LAYOUTS = {
    "lightroom": ["-XMP-dc:Subject={0}", "-XMP-dc:Subject=Species", "-XMP-lr:HierarchicalSubject=Species|{0}"],
    "digikam": [
        "-XMP-dc:Subject={0}",
        "-XMP-digiKam:TagsList=Species/{0}",
        "-XMP-lr:HierarchicalSubject=Species|{0}",
        "-IPTC:Keywords={0}",
        "-CodedCharacterSet=UTF8",
    ],
    "darktable": ["-XMP-dc:Subject={0}", "-XMP-lr:HierarchicalSubject=Animals|Species|{0}"],
    "iptc": ["-IPTC:Keywords={0}", "-CodedCharacterSet=UTF8"],
}
HOLD_NONE = (("png", "iptc"), ("webp", "iptc"))
"""Kinds of files without an IPTC block of their own."""


def run(tool, *arguments):
    done = subprocess.run([get_photo_tool(tool), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def labels_at(path, *classes):
    """Image -> its classes."""
    problems = Problems()
    contents = read(path, problems, ReadingOptions(class_columns=classes))
    found = {item.image: sorted(label.class_name for label in item.labels) for item in contents.items}
    assert not problems.count, problems.sentences
    return found


@pytest.mark.parametrize("name", ["fox", "mill & <weir>", "\u05e8\u05e2\u05d1", "F\xfcchse"])
@pytest.mark.parametrize(
    ("ending", "layout"),
    [
        (ending, layout)
        for ending in ("jpg", "png", "tif", "webp")
        for layout in LAYOUTS
        if (ending, layout) not in HOLD_NONE
    ],
)
def test_keywords_that_exiftool_writes_in_photos_and_sidecars_are_read(tmp_path, ending, layout, name):
    draw(tmp_path / f"a.{ending}", ("fox",))
    draw(tmp_path / "side.jpg", ("fox",), seed=2)
    tags = [tag.format(name) for tag in LAYOUTS[layout]]
    run("exiftool", "-q", "-overwrite_original", *tags, str(tmp_path / f"a.{ending}"))
    expected = {f"a.{ending}": [name], "side.jpg": []}
    if layout != "iptc":
        run("exiftool", "-q", *(tag for tag in tags if "XMP" in tag), str(tmp_path / "side.jpg.xmp"))
        expected["side.jpg"] = [name]
    assert labels_at(tmp_path, name) == expected


def test_keywords_that_exiv2_writes_are_read(tmp_path):
    draw(tmp_path / "a.jpg", ("fox",))
    draw(tmp_path / "b.jpg", ("fox",), seed=2)
    run("exiv2", "-M", "set Xmp.dc.subject XmpBag fox", str(tmp_path / "a.jpg"))
    run("exiv2", "-M", "set Xmp.digiKam.TagsList XmpSeq Species/deer", str(tmp_path / "a.jpg"))
    run("exiv2", "-M", "set Iptc.Application2.Keywords String heron", str(tmp_path / "b.jpg"))
    assert labels_at(tmp_path, "all") == {"a.jpg": ["deer", "fox"], "b.jpg": ["heron"]}


def test_json_that_exiftool_writes_is_read(tmp_path):
    photo = tmp_path / "a.jpg"
    draw(photo, ("fox",))
    run(
        "exiftool",
        "-q",
        "-XMP-dc:Subject=fox",
        "-XMP-dc:Subject=2020",
        "-XMP-lr:HierarchicalSubject=Bird|heron",
        str(photo),
    )
    for number, options in enumerate(([], ["-G"], ["-G1"])):
        file = tmp_path / f"{number}.json"
        file.write_text(run("exiftool", "-json", *options, "-Subject", "-HierarchicalSubject", str(photo)))
        assert recognize(file)
        assert labels_at(file, "all") == {str(photo): ["2020", "fox", "heron"]}


def test_sidecars_that_we_write_are_read_by_exiftool_and_exiv2(tmp_path):
    cells = all_cells(6, len(NAMES))
    images = [f"{number}.jpg" for number in range(6)]
    path = write(KEYWORDS, view_of(cells, NAMES, images, files=images), tmp_path)
    for number, image in enumerate(images):
        present = sorted(name for name, cell in zip(NAMES, cells[number], strict=True) if cell == 1)
        file = str(path / f"{image}.xmp")
        (record,) = json.loads(run("exiftool", "-json", "-struct", "-Subject", "-HierarchicalSubject", file))
        for key, expected in (
            ("Subject", present),
            ("HierarchicalSubject", [one for one in present if "|" not in one]),
        ):
            value = record.get(key, [])
            assert sorted([value] if isinstance(value, str) else value) == expected
        shown = run("exiv2", "-q", "-PXkt", "-K", "Xmp.dc.subject", file) if present else ""
        assert sorted(shown.removeprefix("Xmp.dc.subject").strip().split(", ")) == (present or [""])


@pytest.mark.parametrize("tool", ["exiftool", "exiv2"])
def test_labels_of_all_states_survive_a_tool_that_rewrites_our_sidecar(tmp_path, tool):
    names = [*NAMES, "\x01\x02", ' "x" ', "a\r\nb", "back\\u0041"]
    cells = all_cells(6, len(names))
    images = [f"{number}.jpg" for number in range(6)]
    path = write(KEYWORDS, view_of(cells, names, images, files=images), tmp_path)
    for file in sorted(path.glob("*.xmp")):
        if tool == "exiftool":
            run(tool, "-q", "-overwrite_original", "-XMP-dc:Title=changed", str(file))
        else:
            run(tool, "-M", "set Xmp.dc.title lang=x-default changed", str(file))
        assert "changed" in file.read_text("utf-8")
    assert_same(cells_of(KEYWORDS, path, images, names), cells)


def test_resized_images_have_keywords_inside_that_exiftool_reads_and_an_import_restores(tmp_path, annotator):
    for number in range(2):
        draw(tmp_path / "photos" / f"{number}.jpg", seed=number)
    (tmp_path / "labels.csv").write_text("image,fox,heron\n0.jpg,1,-1\n1.jpg,,1\n")
    before = {path.name: path.read_bytes() for path in (tmp_path / "photos").iterdir()}
    annotator("import", "birds", "labels.csv", "--images", "photos", "--yes")
    annotator("export", "birds", "copies", "--format", "keywords", "--images", "copy")
    assert {name: (tmp_path / "copies" / name).read_bytes() for name in before} == before
    said = annotator("export", "birds", "small", "--format", "keywords", "--images", "resize").stdout
    assert "2 resized, 2 with keywords inside" in said
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "photos").iterdir()}
    shown = [
        json.loads(run("exiftool", "-json", "-validate", "-Subject", str(tmp_path / "small" / f"{number}.jpg")))[0]
        for number in range(2)
    ]
    assert [(one["Subject"], one["Validate"]) for one in shown] == [("fox", "OK"), ("heron", "OK")]
    for sidecar in (tmp_path / "small").glob("*.xmp"):
        sidecar.unlink()
    annotator("import", "again", "small", "--format", "keywords", "--class-columns", "none", "--yes")
    annotator("export", "again", "again.csv")
    assert (tmp_path / "again.csv").read_text().splitlines()[1:] == ["0.jpg,1,0", "1.jpg,,1"]
