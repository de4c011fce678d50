import io
import os
import struct
import threading
import zlib

import numpy as np
import pytest
from harness import profiles
from PIL import Image, PngImagePlugin

from annotator.store.disk.open_files import open_file
from annotator.store.pictures import browser_formats
from annotator.store.pictures.decoding import BadImage, ImageFacts, check_image, open_rgb, write_display
from annotator.store.pictures.files import compute_sha256

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # what Pillow mutters about spoilt files


def _noise(width=64, height=48, channels=3):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def _png_header(width, height):
    def block(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", zlib.compress(b"\0" * 99)) + block(b"IEND", b"")
    )


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "bmp", "gif", "tiff"])
def test_image_reader_returns_size_and_rgb_pixels_of_every_image_format(tmp_path, suffix):
    path = tmp_path / f"image.{suffix}"
    Image.fromarray(_noise()).save(path)
    assert check_image(path) == ImageFacts(64, 48, {"jpg": "JPEG", "tiff": "TIFF"}.get(suffix, suffix.upper()))
    assert open_rgb(path).size == (64, 48) and open_rgb(path).mode == "RGB"


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "bmp", "gif", "tiff"])
def test_image_reader_refuses_a_truncated_file_of_every_format(tmp_path, suffix):
    whole = tmp_path / f"whole.{suffix}"
    Image.fromarray(_noise(200, 150)).save(whole)
    content = whole.read_bytes()
    for kept in (1, 5, 20, 60, 300, len(content) // 2):
        path = tmp_path / f"cut.{suffix}"
        path.write_bytes(content[:kept])
        with pytest.raises(BadImage):
            check_image(path)
        with pytest.raises(BadImage):
            open_rgb(path)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "bmp", "gif", "tiff"])
def test_image_reader_raises_only_bad_image_for_corrupt_bytes(tmp_path, suffix):
    whole = tmp_path / f"whole.{suffix}"
    Image.fromarray(_noise(40, 30)).save(whole)
    chance = np.random.default_rng(1)
    for number in range(60):
        content = np.frombuffer(whole.read_bytes(), np.uint8).copy()
        places = chance.integers(0, min(len(content), 400 if number % 2 else len(content)), 6)
        content[places] = chance.integers(0, 256, 6)
        path = tmp_path / f"spoilt.{suffix}"
        path.write_bytes(content.tobytes())
        for read in (check_image, open_rgb):
            try:
                read(path)
            except BadImage as error:
                assert str(error)


def test_empty_image_file_is_refused_as_empty(tmp_path):
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(BadImage, match=r"empty file \(0 bytes\)"):
        check_image(tmp_path / "empty.jpg")


def test_text_file_named_jpg_is_refused(tmp_path):
    (tmp_path / "notes.jpg").write_text("not a photo at all")
    with pytest.raises(BadImage, match="not an image, or a format that is not read"):
        check_image(tmp_path / "notes.jpg")


def test_unsupported_format_with_a_supported_ending_is_refused(tmp_path):
    Image.fromarray(_noise()).save(tmp_path / "really.ppm")
    (tmp_path / "really.ppm").rename(tmp_path / "named.png")
    with pytest.raises(BadImage, match="not an image, or a format that is not read"):
        check_image(tmp_path / "named.png")


def test_error_for_a_truncated_jpeg_contains_the_word_truncated(tmp_path):
    path = tmp_path / "cut.jpg"
    Image.fromarray(_noise(300, 300)).save(path, quality=95)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(BadImage, match="truncated"):
        check_image(path)


@pytest.mark.parametrize("side", [60_000, 13_400])
def test_decompression_bomb_is_refused_by_its_header(tmp_path, side):
    (tmp_path / "bomb.png").write_bytes(_png_header(side, side))
    with pytest.raises(BadImage, match=f"{side:,} x {side:,} pixels is more than the limit of 179 million pixels"):
        check_image(tmp_path / "bomb.png")


def test_missing_file_and_folder_errors_name_the_reason(tmp_path):
    with pytest.raises(BadImage, match="no such file"):
        open_rgb(tmp_path / "gone.jpg")
    with pytest.raises(BadImage, match="not a file"):
        open_rgb(tmp_path)


@pytest.mark.parametrize("suffix", ["jpg", "tiff", "png", "webp"])
def test_exif_orientation_is_applied_to_size_and_pixels(tmp_path, suffix):
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[:, :40] = (255, 0, 0)  # red on the left; turned a quarter clockwise it is at the top
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / f"turned.{suffix}"
    Image.fromarray(pixels).save(path, exif=exif)
    facts = check_image(path)
    assert (facts.width, facts.height) == (40, 80)
    upright = np.asarray(open_rgb(path)).astype(int)
    assert upright.shape == (80, 40, 3)
    assert upright[:30, :, 0].min() > 200 and upright[50:, :, 0].max() < 60
    assert write_display(path, tmp_path / "shown.jpg", 20) == (10, 20)
    assert Image.open(tmp_path / "shown.jpg").size == (10, 20)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tiff"])
def test_orientation_given_only_in_xmp_metadata_is_applied_to_the_image_size(tmp_path, suffix):
    path = tmp_path / f"turned.{suffix}"
    xmp = b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/>'
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", xmp.decode())
    options = {"png": {"pnginfo": info}, "tiff": {"tiffinfo": {700: xmp}}}.get(suffix, {"xmp": xmp})
    Image.fromarray(_noise(64, 48)).save(path, **options)
    facts = check_image(path)
    assert (facts.width, facts.height) == open_rgb(path).size == (48, 64)


def test_color_profile_is_applied_to_the_pixels(tmp_path):
    def read(name, picture, **options):
        picture.save(tmp_path / name, **options)
        return open_rgb(tmp_path / name).getpixel((5, 5))

    def near(seen, wanted):
        return max(abs(one - other) for one, other in zip(seen, wanted, strict=True)) <= 3

    brown = Image.new("RGB", (16, 16), (200, 100, 50))
    assert read("none.png", brown) == (200, 100, 50)
    assert read("srgb.png", brown, icc_profile=profiles.srgb()) == (200, 100, 50), "left exactly as it is"
    assert near(read("wide.png", brown, icc_profile=profiles.wide()), (225, 113, 49))
    assert near(read("wide.jpg", brown, icc_profile=profiles.wide(), quality=95), (225, 113, 49))
    assert near(read("palette.png", brown.quantize(4), icc_profile=profiles.wide()), (225, 113, 49))
    assert read("spoilt.png", brown, icc_profile=profiles.wide()[:200]) == (200, 100, 50)
    assert near(read("grey.png", Image.new("L", (16, 16), 100), icc_profile=profiles.gray()), (154, 154, 154))
    inks = Image.new("CMYK", (16, 16), (200, 100, 50, 20))
    assert near(read("inks.tiff", inks, icc_profile=profiles.cmyk()), (46, 164, 173))
    # L* 53.2, a* 80.1, b* 67.2 is the red of sRGB.
    red = Image.merge("LAB", [Image.new("L", (16, 16), value) for value in (136, 208, 195)])
    assert max(abs(a - b) for a, b in zip(read("lab.tiff", red), (255, 0, 0), strict=True)) <= 12
    clear = Image.new("RGBA", (16, 16), (200, 100, 50, 255))
    assert near(read("alpha.png", clear, icc_profile=profiles.wide()), (225, 113, 49))
    clear.putalpha(0)
    assert read("clear.png", clear, icc_profile=profiles.wide()) == (255, 255, 255)


def test_sixteen_bit_pixels_are_stretched_and_not_clipped(tmp_path):
    Image.fromarray(np.linspace(1000, 3000, 100, dtype=np.uint16).reshape(10, 10)).save(tmp_path / "xray.png")
    values = np.asarray(open_rgb(tmp_path / "xray.png"))
    assert values.min() == 0 and values.max() == 255 and len(np.unique(values)) > 80


def test_float_image_with_nan_and_infinity_and_constant_image_are_read(tmp_path):
    depth = np.linspace(-5, 5, 100, dtype=np.float32).reshape(10, 10)
    depth[0, 0] = np.nan
    depth[0, 1] = np.inf
    Image.fromarray(depth).save(tmp_path / "depth.tiff")
    values = np.asarray(open_rgb(tmp_path / "depth.tiff"))[..., 0]
    assert values[0, 0] == 0 and values[0, 1] == 255 and values[9, 9] == 255
    Image.fromarray(np.full((4, 4), 7, np.int32)).save(tmp_path / "flat.tiff")
    assert np.asarray(open_rgb(tmp_path / "flat.tiff")).std() == 0


def test_cmyk_palette_gray_and_bilevel_become_rgb(tmp_path):
    red = Image.new("RGB", (16, 16), (255, 0, 0))
    red.convert("CMYK").save(tmp_path / "print.jpg", quality=95)
    red.convert("P").save(tmp_path / "palette.png")
    for name in ("print.jpg", "palette.png"):
        assert np.abs(np.asarray(open_rgb(tmp_path / name)).astype(int) - (255, 0, 0)).max() < 12
    Image.new("1", (16, 16), 1).save(tmp_path / "fax.tiff")
    Image.new("L", (16, 16), 255).save(tmp_path / "grey.jpg")
    for name in ("fax.tiff", "grey.jpg"):
        assert np.asarray(open_rgb(tmp_path / name)).min() == 255


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_pixels_become_white(tmp_path, mode):
    picture = Image.new("RGBA", (16, 16), (0, 0, 0, 0)).convert(mode)
    options = {"transparency": picture.getpixel((0, 0))} if mode == "P" else {}
    picture.save(tmp_path / "clear.png", **options)
    assert np.asarray(open_rgb(tmp_path / "clear.png")).min() == 255


def test_first_frame_of_an_animation_is_read(tmp_path):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    assert open_rgb(tmp_path / "moving.gif").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_open_rgb_downscales_large_images_but_never_below_the_at_least_size(tmp_path, suffix):
    Image.fromarray(_noise(1000, 700)).save(tmp_path / f"large.{suffix}")
    reduced = open_rgb(tmp_path / f"large.{suffix}", at_least=(100, 100))
    assert 100 <= min(reduced.size) < 350
    assert open_rgb(tmp_path / f"large.{suffix}", at_least=(2000, 2000)).size == (1000, 700)


def test_open_rgb_accepts_an_open_file():
    buffer = io.BytesIO()
    Image.fromarray(_noise()).save(buffer, "PNG")
    buffer.seek(0)
    assert open_rgb(buffer).size == (64, 48)


def test_display_copy_is_never_enlarged_and_a_failed_copy_leaves_no_file(tmp_path):
    Image.fromarray(_noise()).save(tmp_path / "small.png")
    shown = tmp_path / "shown"
    shown.mkdir()
    assert write_display(tmp_path / "small.png", shown / "a.webp", 500) == (64, 48)
    assert Image.open(shown / "a.webp").format == "WEBP"
    (tmp_path / "bad.jpg").write_text("no")
    with pytest.raises(BadImage):
        write_display(tmp_path / "bad.jpg", shown / "b.jpg", 500)
    assert [path.name for path in shown.iterdir()] == ["a.webp"]


@pytest.mark.parametrize("read", [check_image, open_rgb, browser_formats.find_media_type, compute_sha256, open_file])
def test_image_reader_does_not_block_on_a_named_pipe(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.jpg")
    answers = []

    def ask():
        try:
            answers.append(read(tmp_path / "pipe.jpg"))
        except (BadImage, OSError) as error:
            answers.append(str(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(120)
    assert answers == [None] or "not a file" in answers[0]
