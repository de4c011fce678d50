"""When a picture was taken: read from EXIF where it says so, and nothing it says stops anything."""

import io
import random
import struct
import tracemalloc

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from annotator.store.images import images
from annotator.store.images.registration import register_folder
from annotator.store.pictures import decoding
from annotator.store.pictures.exif import extract_capture
from annotator.store.pictures.files import list_files
from annotator.worker.features.missing_files import MissingFileWatcher

NOON = 1_777_636_800.0  # 2026-05-01 12:00:00 UTC
SAID = "2026:05:01 12:00:00"


def photo(path, date: str | bytes | None = SAID, kind: str | None = None, **more) -> None:
    """A picture whose EXIF has this DateTimeOriginal, and what else is named by tag."""
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    directory = exif.get_ifd(0x8769)
    if date is not None:
        directory[0x9003] = date
    for tag, value in more.items():
        directory[{"subseconds": 0x9291, "offset": 0x9011}[tag]] = value
    Image.new("RGB", (9, 9), "green").save(path, kind, exif=exif)


def test_capture_time_of_a_tiff_is_read_from_its_exif_directory(tmp_path):
    path = tmp_path / "a.tif"
    info = TiffImagePlugin.ImageFileDirectory_v2()
    for place in (1_000_000, 0):  # written twice, as the place is the length without what is appended
        info.tagtype[0x8769], info[0x8769] = 4, place or path.stat().st_size
        Image.new("RGB", (9, 9), "green").save(path, tiffinfo=info)
    start = path.stat().st_size
    with path.open("ab") as file:  # Pillow writes no such directory
        file.write(struct.pack("<HHHIII", 1, 0x9003, 2, len(SAID) + 1, start + 18, 0) + SAID.encode() + b"\0")
    assert decoding.check_image(path).capture.captured_at == NOON


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_capture_time_is_read_from_every_image_format_with_exif(tmp_path, suffix):
    photo(tmp_path / f"a.{suffix}")
    assert decoding.check_image(tmp_path / f"a.{suffix}").capture.captured_at == NOON
    assert decoding.read_capture(tmp_path / f"a.{suffix}").captured_at == NOON


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, NOON),
        ({"subseconds": "25"}, NOON + 0.25),
        ({"subseconds": "123456789999"}, NOON + 0.123456789),
        ({"subseconds": "soon"}, NOON),
        ({"offset": "+02:00"}, NOON - 7200),
        ({"offset": "-03:30"}, NOON + 12600),
        ({"offset": "+99:99"}, None),
        ({"offset": "here"}, NOON),
        ({"date": "2026-05-01T12:00:00"}, NOON),
        ({"date": None}, None),
        ({"date": "0000:00:00 00:00:00"}, None),
        ({"date": "    :  :     :  :  "}, None),
        ({"date": "2026:02:30 12:00:00"}, None),
        ({"date": "1826:05:01 12:00:00"}, None),
        ({"date": "9999:05:01 12:00:00"}, None),
        ({"date": "yesterday" * 5000}, None),
    ],
)
def test_capture_time_uses_subseconds_and_offsets_and_is_empty_when_invalid(tmp_path, said, expected):
    photo(tmp_path / "a.jpg", **said)
    time = decoding.check_image(tmp_path / "a.jpg").capture.captured_at
    assert time == (None if expected is None else pytest.approx(expected, abs=1e-6))


def block(entries: bytes, count: int, order: str = "<") -> bytes:
    """An EXIF block whose only directory claims so many entries."""
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, count) + entries


HOSTILE = {
    "empty": b"",
    "short": b"II",
    "no directory": b"II*\0\xff\xff\xff\xff",
    "a directory of itself": block(struct.pack("<HHII", 0x8769, 4, 1, 8), 1),
    "more entries than bytes": block(struct.pack("<HHII", 0x8769, 4, 1, 8), 65535),
    "a text of gigabytes": block(struct.pack("<HHII", 0x9003, 2, 2**32 - 1, 8) * 2000, 2000),
    "a place before the block": block(struct.pack("<HHI4s", 0x8769, 4, 1, b"\xff\xff\xff\xff"), 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_malicious_exif_block_yields_no_capture_time_in_bounded_memory(name):
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, "JPEG")
    image = Image.open(file)
    image.info["exif"] = b"Exif\0\0" + HOSTILE[name]
    tracemalloc.start()
    assert extract_capture(image).captured_at is None
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow reads the block, too
def test_damaged_exif_block_raises_no_error(tmp_path):
    photo(tmp_path / "a.jpg", subseconds="5", offset="+01:00")
    content = (tmp_path / "a.jpg").read_bytes()
    start, end = content.index(b"Exif") + 6, content.index(b"\xff\xdb")
    chance = random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 12)):
            damaged[chance.randrange(start, end)] = chance.randrange(256)
        image = Image.open(io.BytesIO(damaged))
        time = extract_capture(image).captured_at
        assert time is None or -2.3e9 < time < 7.3e9
        image.load()  # it reads on where it was


def test_capture_time_is_read_at_registration_and_by_the_worker_for_older_projects(db, tmp_path):
    folder = tmp_path / "dated"
    folder.mkdir()
    photo(folder / "dated.jpg")
    Image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(folder / "plain.jpg")
    Image.fromarray(np.full((8, 8, 3), 9, np.uint8)).save(folder / "away.jpg")
    register_folder(db, folder, list_files(folder, db.paths.project).paths)

    def times() -> dict:
        statement = "SELECT name, captured_at, capture_read FROM image WHERE id > 24"
        return {name: (time, read) for name, time, read in db.tuples(statement)}

    assert times() == {"dated.jpg": (NOON, 1), "plain.jpg": (None, 1), "away.jpg": (None, 1)}
    with db.writing() as sql:  # as the step that added the columns leaves them
        sql.execute("UPDATE image SET captured_at = NULL, capture_read = 0")
    (folder / "away.jpg").rename(tmp_path / "away.jpg")
    MissingFileWatcher(db).read_capture_times()
    assert times() == {"dated.jpg": (NOON, 1), "plain.jpg": (None, 1), "away.jpg": (None, 0)}
    (tmp_path / "away.jpg").rename(folder / "away.jpg")
    assert images.read_capture_times(db, 0, 1) == 26 or times()["away.jpg"] == (None, 1)
