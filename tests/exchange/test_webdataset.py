"""WebDataset: the library reads the shards that are written; labels of others' shards are found, and traps refused."""

import io
import json
import tarfile

import numpy as np
import pytest
from harness.formats_view import all_cells, assert_same, cells_of, class_names, file_names, read, view_of, write
from harness.tables import over
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.formats import FORMATS, webdataset
from annotator.exchange.formats.contents import ImportedLabel
from annotator.records import ABSENT, PRESENT

FORMAT = FORMATS["webdataset"]
STATES = {"present": 1, "absent": 0, "unsure": 2}


def shard(path, *members):
    """A tar of (name, content) pairs, or of TarInfo for what is no file."""
    with tarfile.open(path, "w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return path


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_webdataset_library_and_our_reader_return_the_exported_labels_and_images(tmp_path_factory, data):
    library = pytest.importorskip("webdataset")
    classes, names = data.draw(class_names()), data.draw(file_names())
    cells = all_cells(max(len(names), 4), max(len(classes), 4), data.draw(st.integers(0, 9)))
    cells = cells[: len(names), : len(classes)]
    splits = data.draw(st.sampled_from([(), ["train", "a/b", "", "Ünï 🦊", "con"]]))
    splits = [splits[row % len(splits)] for row in range(len(names))] if splits else ()
    files = [f"a.b {row}.JPG" for row in range(len(names))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webdataset, "MAX_SHARD_IMAGES", 2)
        path = write(
            FORMAT, view_of(cells, classes, names, splits=splits, files=files, block=3), tmp_path_factory.mktemp("x")
        )
    shards = sorted(map(str, path.glob("*.tar")))
    assert len(shards) >= -(-len(names) // 2)
    seen = np.full(cells.shape, -1)
    for sample in library.WebDataset(shards, shardshuffle=False).decode():
        row = names.index(sample["json"]["image"])
        for field, value in STATES.items():
            seen[row, [classes.index(name) for name in sample["json"][field]]] = value
        assert sample["jpg"] == f"{row:064x}".encode()
    assert_same(seen, cells)
    assert FORMAT.recognize and FORMAT.recognize(path)
    assert_same(cells_of(FORMAT, path, names, classes), cells)
    items = {item.image: item for item in read(FORMAT, path)[0].items}
    assert [items[name].attributes.get("split", "") for name in names] == (list(splits) or [""] * len(names))
    assert {given[2:] for item in items.values() for given in item.labels} <= {("ann", 1.7e9, "click")}


def test_labels_of_shards_from_other_tools_are_read(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    shard(
        tmp_path / "train-000001.tar",
        ("in/a.b.jpg", b"x"),
        ("in/a.cls", b"1"),
        ("b.jpg", b"x"),
        ("b.json", json.dumps({"labels": ["cat", 1], "caption": "c"}).encode()),
        ("c.png", b"x"),
        ("c.json", json.dumps({"image": "c/d.png", "present": [], "absent": ["dog"]}).encode()),
        ("d.jpg", b"x"),
    )
    contents, problems = read(FORMAT, tmp_path)
    assert list(contents.classes) == [("cat", ""), ("dog", "")]
    assert [(item.image, list(item.labels), item.answered) for item in contents.items] == [
        ("in/a.b.jpg", [ImportedLabel("dog", PRESENT)], True),
        ("b.jpg", [ImportedLabel("cat", PRESENT), ImportedLabel("dog", PRESENT)], True),
        ("c/d.png", [ImportedLabel("dog", ABSENT)], True),
        ("d.jpg", [], False),
    ]
    assert not problems.count


def link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@over(
    members__words=[
        ([("../a.json", b"{}")], r"t-0.tar/../a.json: it leads out"),
        ([("/etc/a.json", b"{}")], "a.json: it leads out"),
        ([link("a.json", "/etc/passwd")], "a.json: it is a link"),
        ([link("a.json", "b.json", tarfile.LNKTYPE)], "a.json: it is a link"),
        ([link("a.json", "", tarfile.FIFOTYPE)], "a.json: it is a link or device"),
        ([("a.json", b"{]")], "t-0.tar/a: "),
        ([("a.json", b'{"present": [3.5]}')], "t-0.tar/a: present has 3.5"),
        ([("a.cls", b"")], "t-0.tar/a: cls has ''"),
        ([("a.json", b"[" * 100_000)], "t-0.tar/a: "),
        ([("a.json", b" " * (webdataset.MAX_LABEL_BYTES + 1))], "more than the labels of an image"),
        ([("n" * (2 << 20) + ".json", b"{}")], "a header of"),
    ]
)
def test_malicious_or_invalid_shard_members_are_refused(tmp_path_factory, members, words):
    path = shard(tmp_path_factory.mktemp("bad") / "t-0.tar", *members)
    with pytest.raises(AnnotatorError, match=words):
        contents, problems = read(FORMAT, path)
        assert not list(contents.items)
        raise problems.error("It cannot be read:")


def test_truncated_shard_is_refused(tmp_path):
    whole = shard(tmp_path / "t-0.tar", ("a.json", b'{"present": ["cat"]}'), ("b.json", b'{"absent": ["cat"]}' * 100))
    content = whole.read_bytes()
    for end in (700, 1536 + 300, 1536 + 700):
        whole.write_bytes(content[:end])
        with pytest.raises(AnnotatorError, match=r"t-0\.tar is no whole tar"):
            list(read(FORMAT, whole)[0].items)
    whole.write_bytes(b"no tar" * 1000)
    assert FORMAT.recognize and FORMAT.recognize(whole) is None
    with pytest.raises(AnnotatorError, match="no whole tar"):
        list(read(FORMAT, whole)[0].items)
