"""A JPEG whose pixels are not decoded is judged as one whose pixels are."""

import io

import numpy as np
import pytest
from PIL import Image

from annotator.store.pictures.decoding import BadImage, check_image
from annotator.store.pictures.jpeg import parse_whole_jpeg

ROUNDS = 150  # spoilt files of each kind


def _exif(orientation, taken, order="<"):
    exif = Image.Exif()
    exif.endian = order
    if orientation:
        exif[0x0112] = orientation
    exif.get_ifd(0x8769)[0x9003] = taken
    return exif.tobytes()


def _jpeg(mode="RGB", **options):
    chance = np.random.default_rng(0)
    smooth = Image.fromarray(chance.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((97, 61)).convert(mode)
    file = io.BytesIO()
    smooth.save(file, "JPEG", **options)
    return file.getvalue()


KINDS = {
    "plain": _jpeg(quality=90),
    "full colour": _jpeg(subsampling=0, quality=95),
    "grey": _jpeg("L"),
    "cmyk": _jpeg("CMYK"),
    "restarts": _jpeg(restart_marker_blocks=4),
    "tables of its own": _jpeg(optimize=True, comment=b"a comment"),
    "exif": _jpeg(exif=_exif(6, "2024:05:01 12:00:00")),
    "exif of the other order": _jpeg(exif=_exif(3, "2024:05:01 12:00:00", ">")),
    "exif without orientation": _jpeg(exif=_exif(0, "2024:05:01 12:00:00"), xmp=b'<x tiff:Orientation="8"/>'),
    "progressive": _jpeg(progressive=True),
}


def _spoilt(content, chance):
    """The file with bytes changed, put in, left out, cut off or added, now and then several of these."""
    for _ in range(chance.integers(1, 3)):
        place = int(chance.integers(2, len(content)))
        if chance.random() < 0.5:
            place = int(chance.integers(2, min(len(content), 700)))  # headers
        junk = chance.integers(0, 256, int(chance.integers(1, 6)), dtype=np.uint8).tobytes()
        if chance.random() < 0.3:
            junk = b"\xff" + bytes([int(chance.choice([0xC0, 0xC2, 0xC4, 0xD0, 0xD5, 0xD9, 0xDA, 0xDB, 0xDD, 0x01]))])
        way = chance.integers(6)
        if way <= 1:
            content = content[:place] + junk + content[place + len(junk) :]
        elif way == 2:
            content = content[:place] + junk + content[place:]
        elif way == 3:
            content = content[:place] + content[place + len(junk) :]
        elif way == 4:
            content = content[:place] + (b"\xff\xd9" if chance.random() < 0.5 else b"")
        else:
            content += junk
    return content


def _verdict(source):
    try:
        return check_image(source)
    except BadImage as error:
        return str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_jpeg_check_without_decoding_accepts_the_same_files_as_the_decoder(kind, tmp_path):
    path, chance = tmp_path / "spoilt.jpg", np.random.default_rng(5)
    looked_at = 0
    for number in range(ROUNDS):
        content = _spoilt(KINDS[kind], chance) if number else KINDS[kind]
        path.write_bytes(content)
        looked_at += parse_whole_jpeg(content) is not None
        # Files named by a path are always decoded.
        assert _verdict(io.BytesIO(content)) == _verdict(path), number
    assert looked_at > ROUNDS / 4 or kind == "progressive"


def test_jpeg_check_without_decoding_returns_size_format_and_capture_time():
    facts = check_image(io.BytesIO(KINDS["exif"]))
    assert (facts.width, facts.height, facts.format) == (61, 97, "JPEG") and facts.capture.captured_at
    assert parse_whole_jpeg(KINDS["exif"]) and not parse_whole_jpeg(KINDS["progressive"])
