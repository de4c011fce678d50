"""What a person sees is what the model sees: Chromium's pixels against the decoder's, for every odd kind of file."""

import base64
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness import profiles
from harness.contexts import Contexts
from PIL import Image

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.images import browser_copies, images
from annotator.store.pictures import browser_formats
from annotator.store.pictures.decoding import open_rgb

SUFFIXES = ("jpg", "png", "webp", "bmp", "gif", "tiff")
WITH_EXIF = ("jpg", "png", "webp", "tiff")
WITH_PROFILE = ("jpg", "png", "webp", "tiff")
RGB_PROFILES = {
    "none": None,
    "srgb": profiles.srgb(),
    "wide": profiles.wide(),
    "table": profiles.table_rgb(),
    "lab": profiles.lab(),
    "broken": profiles.wide()[:200],
    "grey": profiles.gray(),
}
CLOSE = 8  # of 255, at every pixel: what JPEG at quality 95 does around dots of one pixel

# Four fields, each a multiple of the 16 pixels in which JPEG keeps colours; no two turns of it are alike.
FIELDS = np.kron(np.array([[0, 1], [2, 3]]), np.ones((16, 32), int))
COLORS = np.array([(220, 60, 40), (40, 160, 70), (30, 60, 200), (235, 220, 120)], np.uint8)


@dataclass(frozen=True)
class Made:
    """Writes the files of the table; each content is its own, or two would be one image."""

    folder: Path

    def picture(self, mode: str = "RGB") -> Image.Image:
        number = len(list(self.folder.iterdir()))
        values = COLORS[FIELDS].copy()
        values[:16, :16] = (number % 256, 128, 40 * (number // 256))
        picture = Image.fromarray(values)
        return Image.merge("LAB", picture.split()) if mode == "LAB" else picture.convert(mode)

    def many_bits(self, brightest: int) -> Image.Image:
        gray = np.asarray(self.picture("L")).astype(float)
        return Image.fromarray((gray / 255 * brightest * 0.8 + brightest * 0.1).astype(np.uint16))

    def save(self, name: str, picture: Image.Image, **options) -> Path:
        path = self.folder / name
        if path.suffix == ".jpg":
            options = {"quality": 95, "subsampling": 0} | options
        if path.suffix == ".webp":
            options = {"lossless": True} | options
        picture.save(path, **options)
        return path


def _exif(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def _xmp(orientation: int) -> bytes:
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{orientation}"/>'
        "</rdf:RDF></x:xmpmeta>"
    ).encode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _with_chunk(path: Path, kind: bytes, data: bytes, *, last: bool = False) -> None:
    """Put a chunk into a PNG, behind its header or at its end."""
    content = path.read_bytes()
    place = len(content) - 12 if last else 33
    path.write_bytes(content[:place] + _chunk(kind, data) + content[place:])


def _xmp_options(suffix: str, xmp: bytes) -> dict:
    if suffix == "png":
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", xmp.decode())
        return {"pnginfo": info}
    if suffix == "tiff":
        return {"tiffinfo": {700: xmp}}
    return {"xmp": xmp}


def _orientations(made: Made) -> None:
    for suffix in WITH_EXIF:
        for turn in range(1, 9):
            for name in ("none", "wide"):
                profile = {"icc_profile": RGB_PROFILES[name]} if RGB_PROFILES[name] else {}
                made.save(f"exif-{turn}-{name}.{suffix}", made.picture(), exif=_exif(turn).tobytes(), **profile)
                made.save(f"xmp-{turn}-{name}.{suffix}", made.picture(), **_xmp_options(suffix, _xmp(turn)), **profile)
        both = _xmp_options(suffix, _xmp(3)) | {"exif": _exif(6).tobytes()}
        made.save(f"both.{suffix}", made.picture(), **both)
    late = made.save("late.png", made.picture())
    _with_chunk(late, b"eXIf", _exif(8).tobytes()[6:], last=True)


def _profiles(made: Made) -> None:
    for suffix in WITH_PROFILE:
        for name, profile in RGB_PROFILES.items():
            for turn in (1, 6):
                options = {"icc_profile": profile, "exif": _exif(turn).tobytes()}
                made.save(f"profile-{name}-{turn}.{suffix}", made.picture(), **options)
            made.save(f"grey-{name}.{suffix}", made.picture("L"), icc_profile=profile)
            if suffix != "jpg":
                made.save(f"alpha-{name}.{suffix}", _see_through(made.picture()), icc_profile=profile)
    for suffix in ("jpg", "tiff"):
        for name, profile in {"none": None, "cmyk": profiles.cmyk(), "wide": profiles.wide()}.items():
            for turn in (1, 6):
                options = {"icc_profile": profile, "exif": _exif(turn).tobytes()}
                made.save(f"inks-{name}-{turn}.{suffix}", made.picture("CMYK"), **options)
    for name, profile in {"none": None, "lab": profiles.lab(), "wide": profiles.wide()}.items():
        made.save(f"lab-{name}.tiff", made.picture("LAB"), icc_profile=profile)
    made.save("palette-wide.png", made.picture().quantize(8), icc_profile=profiles.wide())
    made.save("palette-none.png", made.picture().quantize(8))


def _depths(made: Made) -> None:
    for suffix in ("png", "tiff"):
        for bits in (12, 16):
            for turn in (1, 6):
                for name, profile in {"none": None, "grey": profiles.gray()}.items():
                    options = {"exif": _exif(turn).tobytes(), "icc_profile": profile}
                    made.save(f"bits-{bits}-{turn}-{name}.{suffix}", made.many_bits(2**bits - 1), **options)
    made.save("floats.tiff", Image.fromarray(np.asarray(made.picture("L")).astype(np.float32) / 7))
    made.save("bilevel.png", made.picture("1"))
    made.save("bilevel.tiff", made.picture("1"))


def _oddities(made: Made) -> None:
    for suffix in SUFFIXES:
        made.save(f"plain.{suffix}", made.picture())
    made.save("plain-grey.jpg", made.picture("L"))
    made.save("lossy.webp", made.picture(), lossless=False, quality=90)
    made.save("progressive.jpg", made.picture(), progressive=True)
    made.save("rgb.jpg", made.picture(), keep_rgb=True)
    made.save("halved.jpg", made.picture(), subsampling=2)
    clear = made.picture().quantize(8)
    for suffix in ("png", "gif", "webp"):
        frames = {"save_all": True, "append_images": [Image.new("RGB", (64, 32), "black")], "duration": 50}
        made.save(f"moving.{suffix}", made.picture(), **frames)
    made.save("clear-palette.png", clear, transparency=clear.getpixel((40, 5)))
    made.save("clear-palette.gif", clear, transparency=clear.getpixel((40, 20)))
    made.save("clear-rgb.png", made.picture(), transparency=tuple(COLORS[3].tolist()))
    for name, kind, data in (
        ("linear", b"gAMA", struct.pack(">I", 100_000)),
        ("primaries", b"cHRM", struct.pack(">8I", *(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000))),
        ("tagged", b"sRGB", b"\0"),
        ("hdr", b"cICP", bytes((9, 16, 0, 1))),
    ):
        path = made.save(f"chunk-{name}.png", made.picture())
        if name == "primaries":
            _with_chunk(path, b"gAMA", struct.pack(">I", 45455))
        _with_chunk(path, kind, data)
    stretched = _exif(1)
    stretched[0x011A], stretched[0x011B], stretched[0x0128] = 72.0, 144.0, 2
    stretched.get_ifd(0x8769).update({0xA002: 64, 0xA003: 16})
    made.save("stretched.jpg", made.picture(), exif=stretched.tobytes())


def _see_through(picture: Image.Image) -> Image.Image:
    alpha = np.full((picture.height, picture.width), 255, np.uint8)
    alpha[16:, :16], alpha[16:, 16:32] = 0, 100
    picture.putalpha(Image.fromarray(alpha))
    return picture


DRAW = """
async (sources) => {
  const drawn = [];
  for (const source of sources) {
    const picture = new Image();
    picture.src = source;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "black";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let text = "";
    for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
    drawn.push([canvas.width, canvas.height, btoa(text)]);
  }
  return drawn;
}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[Path, Database, dict[str, int]]:
    folder = tmp_path_factory.mktemp("table")
    made = Made(folder / "photos")
    made.folder.mkdir()
    for part in (_orientations, _profiles, _depths, _oddities):
        part(made)
    set_up_project(folder / "project", images_folder=made.folder)
    db = Database(folder / "project")
    ids = {image.name: image.id for image in images.load_all_images(db)}
    assert set(ids) == {path.name for path in made.folder.iterdir()}
    return made.folder, db, ids


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_chromium_renders_every_served_image_copy_like_the_image_decoder(browser: Contexts, table):
    folder, db, ids = table
    names, sources = [], []
    for name, image_id in ids.items():
        for kind in (browser_copies.DISPLAY, browser_copies.THUMB, browser_copies.FULL):
            path, media_type = browser_copies.make(db, image_id, kind)
            names.append((name, kind.name))
            sources.append(f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}")
    page = browser.new_page()
    drawn = page.evaluate(DRAW, sources)
    page.close()
    wrong = []
    read = {name: np.asarray(open_rgb(folder / name)).astype(int) for name in ids}
    for (name, kind), (width, height, text) in zip(names, drawn, strict=True):
        seen = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3]
        if seen.shape != read[name].shape:
            wrong.append(f"{name} ({kind}): {seen.shape} instead of {read[name].shape}")
        elif (most := np.abs(seen - read[name]).max()) > CLOSE:
            wrong.append(f"{name} ({kind}): {most} of 255")
    assert not wrong, f"{len(wrong)} of {len(names)}: {wrong[:40]}"
    assert len(names) > 500


@pytest.mark.slow
@pytest.mark.browser
def test_decoder_applies_color_profiles_like_chromium(browser: Contexts, table):
    folder, _, _ = table
    names = ["profile-wide-1.png", "profile-wide-1.jpg", "grey-grey.png", "profile-srgb-1.png"]
    page = browser.new_page()
    kinds = {"png": "png", "jpg": "jpeg"}
    coded = {name: base64.b64encode((folder / name).read_bytes()).decode() for name in names}
    drawn = page.evaluate(DRAW, [f"data:image/{kinds[name[-3:]]};base64,{coded[name]}" for name in names])
    page.close()
    for name, (width, height, text) in zip(names, drawn, strict=True):
        seen = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3].astype(int)
        assert np.abs(seen - np.asarray(open_rgb(folder / name))).max() <= 3, name


def test_common_image_files_are_served_unchanged_and_unusual_ones_are_converted(table):
    folder, _, _ = table
    as_they_are = {path.name for path in folder.iterdir() if browser_formats.find_media_type(path)}
    usual = {"plain.jpg", "plain-grey.jpg", "progressive.jpg", "halved.jpg", "plain.png", "plain.webp", "lossy.webp"}
    usual |= {f"exif-{turn}-none.jpg" for turn in range(1, 9)} | {"exif-1-none.png", "palette-none.png"}
    usual |= {"profile-srgb-1.jpg", "profile-srgb-6.jpg", "grey-srgb.jpg", "profile-srgb-1.png", "chunk-tagged.png"}
    assert usual <= as_they_are
    odd = {path.name for path in folder.iterdir() if path.suffix in {".bmp", ".gif", ".tiff"}}
    odd |= {name for name in as_they_are if any(mark in name for mark in ("wide", "table", "lab", "broken", "inks"))}
    odd |= {name for name in as_they_are if any(mark in name for mark in ("alpha", "bits", "moving", "clear", "late"))}
    assert not odd & as_they_are


def test_image_copies_of_an_older_decoder_version_are_reused_only_if_pixels_are_unchanged(tmp_path):
    made = Made(tmp_path / "photos")
    made.folder.mkdir()
    made.save("usual.png", made.picture().resize((2000, 1000)))
    made.save("dark.png", made.many_bits(4095).resize((2000, 1000)))
    set_up_project(tmp_path / "project", images_folder=made.folder)
    db = Database(tmp_path / "project")
    for image in images.load_all_images(db):
        for kind in (browser_copies.DISPLAY, browser_copies.THUMB):
            old = db.paths.old_image_copies(image.id, kind.name)[-1]
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_bytes(b"made long ago")
            sent = browser_copies.make(db, image.id, kind)[0]
            assert (sent == old) == (image.name == "usual.png"), (image.name, kind)
            assert old.exists() == (image.name == "usual.png"), "what is not used any more is taken away"


def test_thumbnail_equals_the_downscaled_decoder_output(tmp_path):
    made = Made(tmp_path / "photos")
    made.folder.mkdir()
    large = made.picture().resize((1000, 500))
    made.save("wide.jpg", large, icc_profile=profiles.wide(), exif=_exif(6).tobytes())
    made.save("wide.tiff", large, icc_profile=profiles.wide(), exif=_exif(3).tobytes(), compression="tiff_lzw")
    made.save("clear.webp", _see_through(made.picture()).resize((1000, 500)), icc_profile=profiles.wide())
    set_up_project(tmp_path / "project", images_folder=made.folder)
    db = Database(tmp_path / "project")
    for image in images.load_all_images(db):
        with Image.open(browser_copies.make(db, image.id, browser_copies.THUMB)[0]) as thumb:
            seen = np.asarray(thumb).astype(int)
            assert not thumb.info.get("icc_profile"), "its pixels are sRGB already"
        wanted = np.asarray(open_rgb(made.folder / image.name).resize(seen.shape[1::-1], Image.Resampling.LANCZOS))
        assert max(seen.shape) == 320
        assert np.abs(seen - wanted).mean() < 2, image.name
