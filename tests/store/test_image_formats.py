"""AVIF, JPEG 2000 and .jfif; by extras HEIC, DICOM and raw files; and what is named because it is not read."""

import io
import subprocess
import sys

import numpy as np
import pytest
import tifffile
from conftest import draw
from PIL import Image, features

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.pictures import picture_kinds
from annotator.store.pictures.decoding import BadImage, check_image, open_rgb
from annotator.store.pictures.stretching import Stretch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::UserWarning:pydicom")


def smooth() -> np.ndarray:
    """A picture that every codec keeps within a few values."""
    y, x = np.mgrid[0:48, 0:64]
    return np.stack([x * 4, y * 5, (x + y) * 2], 2).clip(0, 255).astype(np.uint8)


def saved(format_: str, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(smooth()).save(file, format_, **options)
    return file.getvalue()


def heic(**options) -> bytes:
    pillow_heif = pytest.importorskip("pillow_heif")
    file = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(smooth())).save(file, quality=95, **options)
    return file.getvalue()


def dicom(values: np.ndarray, **facts) -> bytes:
    pydicom = pytest.importorskip("pydicom")
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.7"
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = generate_uid()
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID
    data.Rows, data.Columns = values.shape[:2]
    data.SamplesPerPixel = 3 if values.ndim == 3 else 1
    data.PhotometricInterpretation = "RGB" if values.ndim == 3 else "MONOCHROME2"
    if values.ndim == 3:
        data.PlanarConfiguration = 0
    data.BitsAllocated = data.BitsStored = 8 * values.dtype.itemsize
    data.HighBit, data.PixelRepresentation = data.BitsStored - 1, int(values.dtype.kind == "i")
    data.add_new(0x7FE00010, "OW", values.tobytes())
    for name, value in facts.items():
        setattr(data, name, value)
    file = io.BytesIO()
    pydicom.dcmwrite(file, data, enforce_file_format=True)
    return file.getvalue()


def raw() -> bytes:
    """A DNG of a colour filter, as a camera writes it, with a small preview as its first image."""
    pytest.importorskip("rawpy")
    level = np.full((64, 96), 3000, np.uint16)
    file = io.BytesIO()
    tags = [
        (50706, 1, 4, bytes([1, 4, 0, 0]), True), (50707, 1, 4, bytes([1, 1, 0, 0]), True),
        (50708, 2, None, "Drawn Camera", True), (271, 2, None, "Drawn", True), (272, 2, None, "Camera", True),
        (33421, 3, 2, (2, 2), True), (33422, 1, 4, bytes([0, 1, 1, 2]), True),
        (50721, 10, 9, (1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1), True),
        (50717, 4, 1, 4095, True), (50714, 4, 1, 0, True),
        (50728, 5, 3, (1, 1, 1, 1, 1, 1), True), (50778, 3, 1, 21, True),
    ]  # fmt: skip
    tifffile.imwrite(file, level, photometric=32803, extratags=tags, metadata=None)
    return file.getvalue()


KINDS = {
    "avif": lambda: saved("AVIF", quality=95),
    "jp2": lambda: saved("JPEG2000"),
    "heic": heic,
    "dcm": lambda: dicom(smooth()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_image_format_is_decoded_despite_a_wrong_file_ending(tmp_path, kind):
    if kind == "avif" and not features.check("avif"):
        pytest.skip("this Pillow was built without AVIF")
    path = tmp_path / "picture.jpg"
    path.write_bytes(KINDS[kind]())
    facts = check_image(path)
    assert (facts.width, facts.height) == (64, 48)
    assert np.abs(np.asarray(open_rgb(path)).astype(int) - smooth()).mean() < 4


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_file_of_every_image_format_is_refused(kind):
    content = KINDS[kind]()
    for kept in (1, 20, 140, 300, len(content) // 2, len(content) * 4 // 5):
        for read in (check_image, open_rgb):
            with pytest.raises(BadImage):
                read(io.BytesIO(content[:kept]))


@pytest.mark.parametrize("kind", KINDS)
def test_corrupt_bytes_of_every_image_format_raise_only_bad_image(kind):
    content = KINDS[kind]()
    chance = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(content)
        for place in chance.integers(0, len(broken), 4):
            broken[place] = chance.integers(0, 256)
        for read in (check_image, open_rgb):
            try:
                read(io.BytesIO(broken))
            except BadImage as refused:
                assert str(refused)


def test_jfif_file_is_registered_as_an_image(tmp_path):
    draw(tmp_path / "photos" / "a.jpg", seed=1).rename(tmp_path / "photos" / "a.jfif")
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos")
    assert Database(tmp_path / "project").value("SELECT name FROM image") == "a.jfif"


def test_jpeg_2000_with_lost_bits_or_an_unknown_fourth_band_is_refused():
    imagecodecs = pytest.importorskip("imagecodecs")
    dark = (smooth().astype(np.uint16)) * 11
    with pytest.raises(BadImage, match=r"of 16 bits, of which this decoder keeps the upper 8, and the brightest value"):
        open_rgb(io.BytesIO(imagecodecs.jpeg2k_encode(dark, level=0, codecformat="jp2", bitspersample=16)))
    four = np.dstack([smooth(), smooth()[..., 0]])
    with pytest.raises(BadImage, match="of 4 bands, which does not say what the fourth is"):
        check_image(io.BytesIO(imagecodecs.jpeg2k_encode(four, level=0, codecformat="jp2")))


def test_dicom_window_applies_after_rescale_and_monochrome1_is_inverted():
    values = np.arange(64 * 48, dtype=np.int16).reshape(48, 64)
    window = {"RescaleSlope": 2, "RescaleIntercept": -1000, "WindowCenter": [1000, 5], "WindowWidth": [1001, 9]}
    x = values * 2.0 - 1000
    # PS3.3 C.11.2.1.2.1: ((x - (c - 0.5)) / (w - 1) + 0.5) * 255, cut at both ends.
    expected = np.round((((x - 999.5) / 1000 + 0.5) * 255).clip(0, 255))
    shown = np.asarray(open_rgb(io.BytesIO(dicom(values, **window))))[..., 0].astype(int)
    assert np.abs(shown - expected).max() <= 1
    negative = dicom(values, PhotometricInterpretation="MONOCHROME1", **window)
    assert np.array_equal(np.asarray(open_rgb(io.BytesIO(negative)))[..., 0], 255 - shown)
    plain = io.BytesIO(dicom(values))
    assert check_image(plain).stretch == Stretch(16, 0.0, 64 * 48 - 1.0)
    padded = values.copy()
    padded[0] = -2000
    black = np.asarray(open_rgb(io.BytesIO(dicom(padded, PixelPaddingValue=-2000))))
    assert black[0].max() == 0 and black[-1, -1].min() == 255


def test_dicom_with_several_frames_too_many_pixels_or_deflated_is_refused():
    values = np.zeros((4, 5), np.uint16)
    with pytest.raises(BadImage, match="a DICOM of 12 frames"):
        check_image(io.BytesIO(dicom(values, NumberOfFrames=12)))
    with pytest.raises(BadImage, match="60,000 x 60,000 pixels is more than the limit"):
        check_image(io.BytesIO(dicom(values, Rows=60000, Columns=60000)))
    packed = dicom(values).replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.1.99")
    with pytest.raises(BadImage, match="packed as a whole"):
        check_image(io.BytesIO(packed))


def test_raw_file_is_developed_at_full_size_and_refused_when_truncated():
    content = raw()
    facts = check_image(io.BytesIO(content))
    assert facts.format == "RAW" and (facts.width, facts.height) == (96, 64)
    assert open_rgb(io.BytesIO(content)).size == (96, 64)
    with pytest.raises(BadImage):
        check_image(io.BytesIO(content[: len(content) // 2]))


WITHOUT = """
import sys
for name in ("pillow_heif", "pydicom", "rawpy"):
    sys.modules[name] = None
from annotator.__main__ import main
main()
"""


def without_extras(tmp_path, *words: object, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT, *map(str, words)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.process
def test_import_counts_files_that_need_an_optional_package_and_names_its_install_command(tmp_path):
    photos = tmp_path / "photos"
    draw(photos / "a.jpg", seed=1)
    for name in ("b.heic", "c.HEIC", "d.mp4", "e.dcm", "f.cr2", "notes.txt"):
        (photos / name).write_bytes(b"\0\0\0\x18ftypheic" + name.encode())
    for words in (("import", "one", photos, "--yes"), ("init", "two", "--images", photos)):
        said = without_extras(tmp_path, *words)
        assert "1 image added" in said
        assert "2 files left out, photos of phones (HEIC): 2 .heic" in said
        assert 'pip install "multilabel-annotator[heic]"' in said
        assert "1 file left out, videos: 1 .mp4" in said and "ffmpeg -i VIDEO.mp4" in said
        assert '"multilabel-annotator[dicom]"' in said and '"multilabel-annotator[raw]"' in said
    (photos / "a.jpg").unlink()
    for words in (("import", "three", photos, "--yes"), ("init", "four", "--images", photos)):
        said = without_extras(tmp_path, *words, code=1)
        assert "photos of phones (HEIC): 2 .heic" in said and "[heic]" in said
        assert not (tmp_path / words[1] / "project.db").exists()
    (photos / "really.jpg").write_bytes(b"\0\0\0\x18ftypheic" + bytes(400))
    draw(photos / "a.jpg", seed=1)
    said = without_extras(tmp_path, "import", "five", photos, "--yes")
    assert "1 skipped: not an image that is read here, but one of photos of phones (HEIC)" in said


def test_adding_a_folder_again_registers_newly_supported_formats(tmp_path, monkeypatch):
    photos = tmp_path / "photos"
    draw(photos / "a.jpg", seed=1)
    (photos / "b.avif").write_bytes(saved("AVIF"))
    from annotator.store.pictures import files

    with monkeypatch.context() as patch:  # as a version that did not read them
        fewer = picture_kinds.IMAGE_SUFFIXES - {".avif"}
        for module in (picture_kinds, files):
            patch.setattr(module, "IMAGE_SUFFIXES", fewer)
        assert set_up_project(tmp_path / "project", images_folder=photos).registered.added == 1
    done = set_up_project(tmp_path / "project", images_folder=photos).registered
    assert (done.added, done.bad) == (1, [])


def test_every_file_ending_belongs_to_one_image_format():
    endings = [ending for kind in picture_kinds.PICTURE_KINDS for ending in kind.endings]
    assert len(endings) == len(set(endings))
    assert not set(endings) & {".jpg", ".png", ".tif", ".avif", ".jfif"}
    assert (
        picture_kinds.get_unread_ending("a/b.MP4") == ".mp4"
        and picture_kinds.get_unread_ending(".mp4") == ""
        and not picture_kinds.get_advice("a.txt")
    )
