"""Keywords of photos: which are read as classes, what is asked and reported, and sidecars that come back whole."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import draw
from harness.formats_view import all_cells, assert_same, cells_of, view_of, write
from harness.named_images import bring
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xmp_packets import format_packet, parse_packet
from annotator.exchange.formats.keywords import KEYWORDS, read, recognize
from annotator.exchange.imports import unread_keywords
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.reading.reading_options import ReadingOptions

PACKET = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:lr="http://ns.adobe.com/lightroom/1.0/" '
    'xmlns:digiKam="http://www.digikam.org/ns/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/">{}'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)


def bag(tag, *values):
    """A packet with one bag."""
    items = "".join(f"<rdf:li>{value}</rdf:li>" for value in values)
    return f"<{tag}><rdf:Bag>{items}</rdf:Bag></{tag}>"


def packet(*parts):
    return PACKET.format("".join(parts)).encode()


def take(path, name, xmp=b"", iptc=()):
    """A photo with an XMP block and IPTC keywords."""
    draw(path / name, ("fox",), seed=sum(name.encode()))
    with Image.open(path / name) as image:
        image.load()
        texts = PngInfo()
        texts.add_itxt("XML:com.adobe.xmp", xmp.decode())
        image.save(path / name, xmp=xmp, pnginfo=texts)
    if iptc:
        records = b"".join(b"\x1c\x02\x19" + len(one).to_bytes(2, "big") + one for one in iptc)
        block = b"Photoshop 3.0\x008BIM\x04\x04\0\0" + len(records).to_bytes(4, "big") + records
        block += b"\0" * (len(records) % 2)
        content = (path / name).read_bytes()
        segment = b"\xff\xed" + (len(block) + 2).to_bytes(2, "big") + block
        (path / name).write_bytes(content[:2] + segment + content[2:])


def labels_at(path, *classes, asked=False):
    """Image -> its present classes, and what was said; with what is asked instead if `asked`."""
    problems = Problems()
    contents = read(path, problems, ReadingOptions(class_columns=None if asked else classes))
    found = {item.image: sorted(label.class_name for label in item.labels) for item in contents.items}
    if problems.count:
        raise problems.error("problems:")
    return found, [one.why for one in contents.interpretations] if asked else list(contents.sentences)


@pytest.fixture
def photos(tmp_path):
    """Photos with each kind of keyword, and one without."""
    root = tmp_path / "photos"
    take(root, "subject.jpg", packet(bag("dc:subject", "fox", "mill &amp; weir")))
    take(
        root, "lightroom.jpg", packet(bag("dc:subject", "Species", "fox"), bag("lr:hierarchicalSubject", "Species|fox"))
    )
    take(root, "digikam.png", packet(bag("digiKam:TagsList", "Species/deer")))
    take(root, "iptc.jpg", iptc=(b"fox", "F\xfcchse".encode("latin-1"), "\u05e8\u05e2".encode()))
    take(root, "none.jpg")
    take(root, "side.jpg")
    take(root, "stem.jpg")
    (root / "side.jpg.xmp").write_bytes(packet(bag("dc:subject", "deer")))
    (root / "stem.xmp").write_bytes(packet("<dc:subject>heron</dc:subject>"))
    return root


def test_keywords_of_all_kinds_are_present_labels_of_the_chosen_classes(photos):
    found, said = labels_at(photos, "all")
    assert found == {
        "digikam.png": ["deer"],
        "iptc.jpg": ["F\xfcchse", "fox", "\u05e8\u05e2"],
        "lightroom.jpg": ["Species", "fox"],
        "none.jpg": [],
        "side.jpg": ["deer"],
        "stem.jpg": ["heron"],
        "subject.jpg": ["fox", "mill & weir"],
    }
    assert any("fox (Species|fox)" in one and "deer (Species|deer)" in one for one in said)
    found, said = labels_at(photos, "fox", "deer")
    assert found["lightroom.jpg"] == found["subject.jpg"] == found["iptc.jpg"] == ["fox"]
    assert found["stem.jpg"] == []
    assert any(one.startswith("5 keywords not read, as you say:") and "heron 1" in one for one in said)


def test_keywords_without_a_choice_are_asked_about_and_not_stored(tmp_path, photos):
    found, asked = labels_at(photos, asked=True)
    assert not any(found.values())
    assert len(asked) == 1
    assert asked[0].startswith("7 keywords on 6 images (fox 3, deer 2, ")
    with pytest.raises(AnnotatorError, match="--class-columns all or --class-columns fox,deer"):
        bring(tmp_path / "project", photos, format="keywords")


def test_images_import_reports_keywords_that_it_does_not_read(tmp_path, photos):
    with prepare_import(tmp_path / "project", photos, ImportOptions(format="images"), by="Ann") as plan:
        said = [one for one in plan.sentences if "keyword" in one]
    assert len(said) == 1
    assert said[0].startswith("7 keywords in 6 images were not read: fox 3, deer 2, ")
    assert said[0].endswith("--format keywords reads them.")


def test_report_of_unread_keywords_looks_at_some_of_many_images(tmp_path, monkeypatch):
    for number in range(9):
        take(tmp_path / "photos", f"{number}.jpg", packet(bag("dc:subject", "fox")))
    monkeypatch.setattr(unread_keywords, "MAX_PHOTOS_SEEN", 4)
    with prepare_import(tmp_path / "project", tmp_path / "photos", ImportOptions(format="images"), by="Ann") as plan:
        said = [one for one in plan.sentences if "keyword" in one]
    assert said == [
        "1 keyword in 3 images of the 3 looked at (9 in all) was not read: fox 3. --format keywords reads them."
    ]


def test_keyword_at_the_end_of_two_paths_must_be_chosen_by_its_path(tmp_path):
    take(tmp_path, "a.jpg", packet(bag("lr:hierarchicalSubject", "Species|fox")))
    take(tmp_path, "b.jpg", packet(bag("lr:hierarchicalSubject", "Toys|fox")))
    for chosen in ("fox", "all"):
        with pytest.raises(AnnotatorError, match=r"'Species\|fox' \(1\) and 'Toys\|fox' \(1\)"):
            labels_at(tmp_path, chosen)
    assert labels_at(tmp_path, "Species|fox")[0] == {"a.jpg": ["fox"], "b.jpg": []}


def test_sidecar_that_several_images_share_is_reported_unless_it_names_the_ending(tmp_path):
    take(tmp_path, "a.jpg")
    take(tmp_path, "a.png")
    (tmp_path / "a.xmp").write_bytes(packet(bag("dc:subject", "fox")))
    found, said = labels_at(tmp_path, "all")
    assert not any(found.values())
    assert any("1 sidecar not read, because several images have its name: a.xmp" in one for one in said)
    ending = "<photoshop:SidecarForExtension>PNG</photoshop:SidecarForExtension>"
    (tmp_path / "a.xmp").write_bytes(packet(ending, bag("dc:subject", "fox")))
    assert labels_at(tmp_path, "all")[0] == {"a.jpg": [], "a.png": ["fox"]}


def test_unknown_choice_is_an_error_that_names_similar_keywords(photos):
    with pytest.raises(AnnotatorError, match=r"no image has the keyword 'fxo'\. Did you mean 'fox'"):
        labels_at(photos, "fxo")


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE a [<!ENTITY b 'subject'>]><a>&b;</a>",
        b"<subject>" * 100_000,
        b"subject \xff\xfe\x00",
        b"<?xml version='1.0' encoding='no-such'?><subject/>",
        b"<a>subject</a>" + b"x" * (5 << 20),
    ],
    ids=["entity", "deep", "bytes", "charset", "large"],
)
def test_damaged_packets_are_reported_and_the_other_images_read(tmp_path, content):
    take(tmp_path, "a.jpg", packet(bag("dc:subject", "fox")))
    take(tmp_path, "b.jpg")
    (tmp_path / "b.xmp").write_bytes(content)
    found, said = labels_at(tmp_path, "all")
    assert found == {"a.jpg": ["fox"], "b.jpg": []}
    assert any(one.startswith("1 file not read, such as b.xmp: it ") for one in said)


def test_keywords_of_exiftool_json_are_read_and_values_that_are_not_text_are_problems(tmp_path):
    records = [
        {"SourceFile": "./photos/a.jpg", "XMP:Subject": ["fox", 2020], "HierarchicalSubject": "Species|fox"},
        {"SourceFile": "b.jpg", "TagsList": "Species/deer"},
        {"SourceFile": "c.jpg"},
    ]
    file = tmp_path / "tags.json"
    file.write_text(json.dumps(records))
    assert recognize(file)
    assert labels_at(file, "all")[0] == {"photos/a.jpg": ["2020", "fox"], "b.jpg": ["deer"], "c.jpg": []}
    file.write_text(json.dumps([{"SourceFile": "a.jpg", "Keywords": [1.5]}, {"Keywords": "fox"}]))
    with pytest.raises(AnnotatorError, match=r"(?s)Keywords has 1\.5.*record 2: it has no SourceFile"):
        labels_at(file, "all")


HOSTILE_NAMES = [
    "a & <b>",
    "A|B",
    "C/D",
    "\x01\x02",
    "\x01\x03",
    "\u202e\u05e8\u05e2",
    ' "x" ',
    "back\\u0041",
    "a\r\nb",
]
HOSTILE_NAMES += ["\ufffd", "all"]


def test_sidecars_round_trip_all_states_of_classes_with_any_characters(tmp_path):
    cells = all_cells(8, len(HOSTILE_NAMES))
    images = [f"photo {number} é.jpg" for number in range(8)]
    path = write(KEYWORDS, view_of(cells, HOSTILE_NAMES, images, files=images), tmp_path)
    assert recognize(path)
    assert_same(cells_of(KEYWORDS, path, images, HOSTILE_NAMES), cells)


def test_keyword_that_another_program_changed_in_our_sidecar_counts(tmp_path):
    own = {"image": ["a.jpg"], "present": ["fox"], "absent": ["deer"]}
    file = tmp_path / "a.jpg.xmp"
    file.write_text(format_packet(["fox"], own).replace("<rdf:li>fox<", "<rdf:li>deer<"))
    contents = read(tmp_path, Problems(), ReadingOptions())
    labels = [(label.class_name, label.state) for item in contents.items for label in item.labels]
    assert labels == [("deer", 1)]


def test_other_keywords_in_our_sidecars_are_asked_about(tmp_path):
    own = {"image": ["a.jpg"], "present": ["fox"]}
    (tmp_path / "a.jpg.xmp").write_text(format_packet(["fox", "sunset"], own))
    found, asked = labels_at(tmp_path, asked=True)
    assert found == {"a.jpg": ["fox"]}
    assert asked == ["1 keyword on 1 image (sunset 1): which are classes"]


def test_packet_of_a_tiff_is_read(tmp_path):
    tags = ImageFileDirectory_v2()
    tags[700] = packet(bag("dc:subject", "fox"))
    tags.tagtype[700] = 1
    Image.new("RGB", (8, 8)).save(tmp_path / "a.tif", tiffinfo=tags)
    assert labels_at(tmp_path, "all")[0] == {"a.tif": ["fox"]}


def test_path_that_holds_the_separator_is_no_hierarchy_in_our_sidecar():
    found = parse_packet(format_packet(["A|B"], {}).encode())
    assert (found.flat, found.paths) == (["A|B"], [])


def test_sidecars_in_an_archive_are_unpacked_and_read(tmp_path, photos):
    archive = shutil.make_archive(str(tmp_path / "photos"), "zip", photos)
    reading = ReadingOptions(class_columns=("deer", "heron"))
    plan = bring(tmp_path / "project", Path(archive), format="keywords", reading=reading)
    assert plan.done
    assert plan.done.imported.answers == 3


def test_levels_of_keywords_become_relations_between_classes(tmp_path, annotator):
    for number, path in enumerate(("Life|Canid|fox", "Life|Canid|wolf", "Places|North")):
        take(tmp_path / "photos", f"{number}.jpg", packet(bag("lr:hierarchicalSubject", path)))
    draw(tmp_path / "photos" / "3.jpg", seed=3)
    (tmp_path / "labels.csv").write_text("image,labels\n0.jpg,fox\n1.jpg,wolf\n3.jpg,Life\n")
    annotator("import", "birds", "labels.csv", "--images", "photos", "--yes")
    relations = json.loads(annotator("relations", "birds", "--from", "photos", "--dry-run", "--json").stdout)
    assert relations["relations"] == []
    made = json.loads(annotator("relations", "birds", "--from", "photos", "--json").stdout)["relations"]
    assert [one["classes"] for one in made] == [["fox", "Life"], ["wolf", "Life"]]
    annotator("relations", "birds", "--undo")
    made = json.loads(annotator("relations", "birds", "--from", "photos", "--add", "--json").stdout)["relations"]
    assert [one["classes"] for one in made] == [["Canid", "Life"], ["fox", "Canid"], ["wolf", "Canid"]]
    (tmp_path / "flat").mkdir()
    take(tmp_path / "flat", "a.jpg", packet(bag("dc:subject", "fox")))
    refused = annotator("relations", "birds", "--from", "flat", code=1).stderr
    assert "has no keyword above a class of the project" in refused
