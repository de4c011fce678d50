"""TIFFs and PNGs of more than 8 bits and of many bands: what people and the network see, and who chooses it."""

import io
import json
import struct

import numpy as np
import pytest
from harness.band_files import tiff, values_of
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.band_selection import choose_bands, describe_band_choice
from annotator.exchange.project_setup import SetupSettings, add_folder, set_up_project
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.features.project_contents import ProjectContents
from annotator.store.images import browser_copies, images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.labels import decisions
from annotator.store.pictures import decoding
from annotator.store.pictures.bands import NO_BAND_CHOICES, BandChoices, parse_bands
from annotator.store.pictures.decoding import BadImage, check_image, open_rgb
from annotator.store.pictures.stretching import Stretch
from spmll.backbones.frozen_backbone import load_backbone

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # what Pillow mutters about spoilt files
CHOSEN = BandChoices((4, 3, 2))


def png16(values: np.ndarray) -> bytes:
    """A PNG of 16 bits in colour, written by hand: Pillow writes none."""
    import zlib

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = values.shape
    head = struct.pack(">IIBBBBB", width, height, 16, {2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", head) + block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")


def scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.round((values.astype(float) - low) / (high - low) * 255).astype(int)


def seen(source, bands=NO_BAND_CHOICES) -> np.ndarray:
    return np.asarray(open_rgb(source, bands=bands)).astype(int)


@pytest.mark.parametrize("kind", ["tiff", "png"])
def test_16_bit_color_and_gray_images_are_stretched_over_all_channels_together(kind):
    values = values_of(3)
    values[..., 1] //= 2  # a channel that is darker stays darker
    file = tiff(values, photometric="rgb") if kind == "tiff" else io.BytesIO(png16(values))
    assert np.array_equal(seen(file), scaled(values, 0, 3000))
    assert check_image(file).stretch == Stretch(16, 0.0, 3000.0)
    gray = tiff(values[..., :1].squeeze())
    assert np.array_equal(seen(gray)[..., 0], scaled(values[..., 0], 0, 3000))
    assert check_image(gray).stretch == Stretch(16, 0.0, 3000.0)


def test_8_bit_images_are_never_stretched():
    dark = (values_of(5) // 100).astype(np.uint8)
    assert np.array_equal(seen(tiff(dark), CHOSEN), dark[..., [3, 2, 1]])
    assert check_image(tiff(dark), CHOSEN).stretch is None


@pytest.mark.parametrize("channels", [2, 4])
def test_transparent_pixels_of_a_16_bit_png_are_white_and_ignored_by_the_stretch(channels):
    values = values_of(channels)
    values[..., -1] = 65535
    values[5, 5] = [60000] * (channels - 1) + [0]
    shown = seen(io.BytesIO(png16(values)))
    assert shown[5, 5].tolist() == [255] * 3
    opaque = np.ones(shown.shape[:2], bool)
    opaque[5, 5] = False
    colors = values[..., :-1] if channels == 4 else values[..., [0, 0, 0]]
    assert np.array_equal(shown[opaque], scaled(colors, 0, 3000)[opaque])


LAYOUTS = [
    {"compression": None, "planarconfig": "separate"},
    {"compression": "zlib", "predictor": True, "byteorder": ">"},
    {"compression": "zlib", "tile": (32, 16), "planarconfig": "separate"},
    {"compression": None, "bigtiff": True, "rowsperstrip": 7, "byteorder": ">"},
    {"compression": None, "tile": (16, 16)},
]


@pytest.mark.parametrize("type_", ["u2", "i2", "f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_chosen_bands_are_read_from_every_tiff_layout(layout, type_):
    values = values_of(5).astype(type_)
    assert np.abs(seen(tiff(values, **layout), CHOSEN) - scaled(values[..., [3, 2, 1]], 0, 3000)).max() <= 1


@pytest.mark.parametrize("compression", ["lzw", "zstd", "packbits", "lzma"])
@pytest.mark.parametrize("predictor", [False, True])
def test_chosen_bands_are_read_from_compressed_tiffs(compression, predictor):
    pytest.importorskip("imagecodecs", reason="tifffile writes these with it")
    for type_ in ("u2", "f4"):
        if predictor and compression in ("packbits", "lzma"):
            continue
        values = values_of(6).astype(type_)
        file = tiff(values, compression=compression, predictor=predictor or None)
        assert np.abs(seen(file, CHOSEN) - scaled(values[..., [3, 2, 1]], 0, 3000)).max() <= 1


def test_image_with_unknown_band_order_is_refused_until_bands_are_chosen():
    for count, example in ((2, "1"), (4, "3,2,1"), (13, "3,2,1")):
        with pytest.raises(BadImage) as refused:
            open_rgb(tiff(values_of(count)))
        assert str(refused.value) == (
            f"{count} bands of 16 bits; which three to show is not known until it is said (annotator bands PROJECT "
            f"{example}; of a new project, init --bands {example})"
        )
    assert np.array_equal(
        seen(tiff(values_of(2)), BandChoices((2, 2, 2)))[..., 0], scaled(values_of(2)[..., 1], 0, 3000)
    )
    with pytest.raises(BadImage, match=r"it has 4 bands, and 9,3,2 are to be shown"):
        open_rgb(tiff(values_of(4)), bands=BandChoices((9, 3, 2)))


def test_band_choice_per_band_count_overrides_file_metadata_which_overrides_the_default():
    values = values_of(4)
    file = tiff(values, photometric="rgb", extrasamples=["unspecified"])
    assert np.array_equal(seen(file, CHOSEN), seen(file))  # red, green, blue and another: it says so
    assert np.array_equal(seen(file), scaled(values[..., :3], 0, 3000))
    of_four = BandChoices((1, 1, 1), {4: (4, 3, 2)})
    assert np.array_equal(seen(file, of_four), scaled(values[..., [3, 2, 1]], 0, values[..., 1:].max()))
    assert check_image(file).bands == "4:rgb" and check_image(file, of_four).bands == "4:4,3,2"


def test_red_green_and_blue_bands_are_found_by_name_in_any_order():
    values = values_of(4)
    names = ("Blue", "Green", "Red", "NIR")
    items = "".join(
        f'<Item name="DESCRIPTION" sample="{n}" role="description">{name}</Item>' for n, name in enumerate(names)
    )
    by_gdal = tiff(values, extratags=[(42112, 2, None, f"<GDALMetadata>{items}</GDALMetadata>", True)])
    by_text = tiff(values, description="blue, green, red, nir", metadata=None)
    for file in (by_gdal, by_text):
        assert np.array_equal(seen(file), scaled(values[..., [2, 1, 0]], 0, 3000))
    unhelpful = tiff(values, description="B2, B3, B4, B8", metadata=None)
    with pytest.raises(BadImage, match=r"4 bands of 16 bits \(named b2, b3, b4, b8\); which three"):
        open_rgb(unhelpful)


def test_three_unnamed_bands_are_shown_in_file_order_and_recorded():
    values = values_of(3)
    assert np.array_equal(seen(tiff(values)), scaled(values, 0, 3000))
    assert check_image(tiff(values)).bands == "3:order"
    assert check_image(tiff(values, photometric="rgb")).bands == ""


def test_fourth_band_is_transparency_only_when_the_file_declares_it():
    values = np.full((6, 6, 4), 100, np.uint8)
    values[..., 3] = 0
    assert seen(tiff(values, photometric="rgb", extrasamples=["unassalpha"])).min() == 255
    assert seen(tiff(values, photometric="rgb", extrasamples=["unspecified"])).max() == 100
    wide = values_of(4)
    wide[..., 3] = 65535
    wide[3, 3, 3] = 0
    shown = seen(tiff(wide, photometric="rgb", extrasamples=["unassalpha"]))
    assert shown[3, 3].tolist() == [255] * 3
    assert np.array_equal(shown[1], scaled(wide[1, :, :3], 0, 3000))


@pytest.mark.parametrize("channels", [1, 5])
def test_nodata_and_nan_pixels_are_black_and_ignored_by_the_stretch(channels):
    values = np.linspace(10, 20, 40 * 30 * channels, dtype=np.float32).reshape(30, 40, channels)
    values[0, 0], values[0, 1], values[0, 2] = -9999, np.nan, np.inf
    file = tiff(values.squeeze(), extratags=[(42113, 2, None, "-9999", True)])
    shown, chosen = seen(file, CHOSEN), values[..., [3, 2, 1] if channels > 1 else [0, 0, 0]]
    assert shown[0, 0].max() == 0 and shown[0, 1].max() == 0 and shown[0, 2].min() == 255
    finite = np.isfinite(values).all(2) & (values > -9999).all(2)
    known = chosen[finite]
    assert np.abs(shown[finite] - scaled(known, known.min(), known.max())).max() <= 1
    assert check_image(file, CHOSEN).stretch.low == pytest.approx(known.min())


def test_multiband_tiff_is_rotated_by_its_orientation_tag_and_gray_when_constant():
    values = values_of(4)
    turned = tiff(values, extratags=[(274, 3, 1, 6, True)])
    assert check_image(turned, CHOSEN).width == 30
    assert np.array_equal(seen(turned, CHOSEN), np.rot90(seen(tiff(values), CHOSEN), -1))
    flat = tiff(np.full((5, 5, 4), 7, np.uint16))
    assert (seen(flat, CHOSEN) == 128).all()


def patched(file: io.BytesIO, tag: int, value: int, kind: int = 4) -> io.BytesIO:
    """A classic little-endian TIFF with another value in one tag."""
    content = bytearray(file.getvalue())
    (first,) = struct.unpack_from("<I", content, 4)
    (count,) = struct.unpack_from("<H", content, first)
    for place in range(first + 2, first + 2 + 12 * count, 12):
        if struct.unpack_from("<H", content, place)[0] == tag:
            struct.pack_into("<HHII", content, place, tag, kind, 1, value)
            return io.BytesIO(content)
    raise AssertionError(f"no tag {tag}")


@pytest.mark.parametrize(
    ("tag", "value", "why"),
    [
        (277, 2**31, r"says that it has 2,147,483,648 bands; at most 1,000"),
        (277, 900, r"truncated|bits"),
        (256, 2**31 - 1, r"pixels is more than|bytes; the limit"),
        (257, 2**31 - 1, r"pixels is more than|truncated"),
        (259, 7, r"compression 7; read are none, LZW, deflate"),
        (339, 6, r"sample format 6, which is not read"),
        (278, 2**32 - 1, None),  # one strip for all rows, however many: as the specification allows
        (273, 2**32 - 1, r"truncated"),
        (279, 2**32 - 1, r"truncated"),
        (256, 0, r"no size"),
    ],
)
def test_tiff_with_forged_tags_is_refused_before_memory_is_allocated(tag, value, why):
    file = patched(tiff(values_of(5).astype(np.int16), metadata=None), tag, value)
    before = decoding.DECODING_BUDGET.granted_at_most
    if why is None:
        assert check_image(file, CHOSEN).width == 40
        return
    for read in (check_image, lambda source, bands: open_rgb(source, bands=bands)):
        with pytest.raises(BadImage, match=why):
            read(file, CHOSEN)
    assert decoding.DECODING_BUDGET.granted_at_most <= max(before, 20_000_000)


def test_tiff_tile_that_decompresses_to_gigabytes_is_refused():
    file = tiff(values_of(5), compression="zlib", tile=(16, 16), metadata=None)
    with pytest.raises(BadImage, match="bytes; the limit is 80,000,000"):
        check_image(patched(patched(file, 322, 2**20), 323, 2**20), CHOSEN)


@pytest.mark.parametrize(
    "make", [lambda: tiff(values_of(5)).getvalue(), lambda: png16(values_of(4))], ids=["tiff", "png"]
)
def test_truncated_multiband_image_is_refused_and_changed_bytes_raise_only_bad_image(make):
    content = make()
    for kept in (9, 60, 300, len(content) // 2, len(content) * 3 // 4):
        with pytest.raises(BadImage):
            check_image(io.BytesIO(content[:kept]), CHOSEN)
    chance = np.random.default_rng(0)
    for _ in range(150):
        broken = bytearray(content)
        for place in chance.integers(0, min(len(broken), 700), 3):
            broken[place] = chance.integers(0, 256)
        for read in (check_image, lambda source, bands: open_rgb(source, bands=bands)):
            try:
                read(io.BytesIO(broken), CHOSEN)
            except BadImage as refused:
                assert str(refused)


def test_truncated_tiff_with_separate_planes_is_refused():
    content = tiff(values_of(13), planarconfig="separate").getvalue()
    with pytest.raises(BadImage, match="truncated"):
        check_image(io.BytesIO(content[:-100]), CHOSEN)  # the last bands, which nobody sees


# The choice of a project


@pytest.fixture
def tiles(tmp_path):
    folder = tmp_path / "tiles"
    folder.mkdir()
    Image.new("RGB", (20, 20), (9, 99, 199)).save(folder / "plain.png")
    for number, count in enumerate((4, 13)):
        (folder / f"{count}.tif").write_bytes(tiff(values_of(count, 3000 + number)).getvalue())
    return folder


def in_project(db: Database, name: str) -> int:
    return db.value("SELECT id FROM image WHERE name = ?", [name])


def test_project_adds_multiband_images_after_a_band_choice_and_shows_them_consistently(tmp_path, tiles):
    done = set_up_project(tmp_path / "project", images_folder=tiles).registered
    assert (done.added, len(done.bad)) == (1, 2)
    assert all("annotator bands PROJECT" in bad.reason for bad in done.bad)
    db = Database(tmp_path / "project")
    again = add_folder(db, tiles)
    assert (again.added, len(again.bad)) == (0, 2)
    chosen = choose_bands(db, (4, 3, 2))
    assert (chosen.added, chosen.changed, chosen.bad) == (2, 0, [])
    assert "2 images of 16 bits were stretched each" in " ".join(chosen.sentences)
    for count, high in ((4, 3000), (13, 3001)):
        image_id = in_project(db, f"{count}.tif")
        copy, _ = browser_copies.make(db, image_id, browser_copies.FULL)
        for_network = open_rgb(images.find_image_path(db, image_id), (8, 8), get_shown_bands(db))
        expected = scaled(values_of(count, high)[..., [3, 2, 1]], 0, high)
        assert np.array_equal(
            np.asarray(open_rgb(images.find_image_path(db, image_id), bands=get_shown_bands(db))), expected
        )
        written = np.asarray(Image.open(copy).convert("RGB")).astype(int)
        assert np.abs(written.mean((0, 1)) - expected.mean((0, 1))).max() < 2
        assert np.abs(np.asarray(for_network).astype(int).mean((0, 1)) - expected.mean((0, 1))).max() < 2


def test_embed_command_passes_the_chosen_bands_to_the_backbone(tmp_path, tiles, annotator):
    (tiles / "plain.png").unlink()
    set_up_project(tmp_path / "project", images_folder=tiles, settings=SetupSettings(bands=(4, 3, 2)))
    db = Database(tmp_path / "project")
    db.set_setting("backbone", "efficientnet_lite0")
    said = json.loads(annotator("embed", db.paths.project, "--json").stdout)
    assert (said["images"], said["failed"], said["remaining"]) == (2, 0, 0)
    cache, backbone = open_features(db, "efficientnet_lite0"), load_backbone("efficientnet_lite0")
    for image_id, features in zip(cache.image_ids.tolist(), cache.features, strict=True):
        least = (backbone.input_size, backbone.input_size)
        picture = open_rgb(images.find_image_path(db, image_id), least, CHOSEN)
        alone = backbone.features(backbone.preprocess(picture)[None])[0].numpy()
        assert np.allclose(features, alone, atol=2e-3)


def test_changed_band_choice_recreates_images_and_embeddings_and_keeps_labels(tmp_path, tiles):
    set_up_project(tmp_path / "project", images_folder=tiles, settings=SetupSettings(bands=(3, 2, 1)), class_file=None)
    db = Database(tmp_path / "project")
    many, four, plain = (in_project(db, name) for name in ("13.tif", "4.tif", "plain.png"))
    from annotator.store.classes import classes

    classes.add_classes(db, [("field", "")])
    field = classes.load_classes_by_name(db)["field"].id
    decisions.save(
        db,
        [Decision(uuid="one", action="label", image_id=many, class_id=field, state=1, source="click", annotator="Ann")],
    )
    first, _ = browser_copies.make(db, many, browser_copies.FULL)
    before = np.asarray(Image.open(first))
    ids = np.array([many, four, plain])
    was = ProjectContents(db).load_hashes(ids)
    heat = db.paths.heatmap(1, many, field)
    other_heat = db.paths.heatmap(1, four, field)
    for path in (heat, other_heat):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"png")
    chosen = choose_bands(db, (9, 3, 2), 13)
    assert (chosen.changed, chosen.added) == (1, 0)
    now = ProjectContents(db).load_hashes(ids)
    assert (was == now).all(1).tolist() == [False, True, True]
    assert not heat.exists() and other_heat.exists()
    after, _ = browser_copies.make(db, many, browser_copies.FULL)
    assert not np.array_equal(before, np.asarray(Image.open(after)))
    assert [label.state for label in decisions.load_labels(db, [many])] == [1]
    assert "1 image to analyze, which takes the worker about" in " ".join(describe_band_choice(chosen, (9, 3, 2), 13))
    assert choose_bands(db, (9, 3, 2), 13).changed == 0, "the same choice changes nothing"


def test_open_feature_cache_drops_embeddings_of_the_previous_band_choice(tmp_path, tiles):
    from harness.feature_shards import add_features

    set_up_project(tmp_path / "project", images_folder=tiles, settings=SetupSettings(bands=(3, 2, 1)))
    db = Database(tmp_path / "project")
    ids = db.integer_rows("SELECT id FROM image ORDER BY id")[:, 0]
    features = np.ones((len(ids), 4), np.float16)
    add_features(db, "made", ids, features, np.ones((len(ids), 9, 4), np.float16))
    cache = open_features(db, "made")
    assert sorted(cache.image_ids.tolist()) == ids.tolist()
    choose_bands(db, (4, 3, 2))
    cache.refresh_if_changed()
    assert cache.image_ids.tolist() == [in_project(db, "plain.png")]


def test_band_choice_beyond_the_bands_of_some_images_is_refused_with_their_count(tmp_path, tiles):
    set_up_project(tmp_path / "project", images_folder=tiles, settings=SetupSettings(bands=(3, 2, 1)))
    db = Database(tmp_path / "project")
    with pytest.raises(AnnotatorError, match=r"9,3,2 cannot be shown of all images.*--of(.|\n)*1 image of 4 bands"):
        choose_bands(db, (9, 3, 2))
    assert get_shown_bands(db) == BandChoices((3, 2, 1))
    for text in ("4,3", "0,1,2", "red", "1,2,3,4", "²,1,1", "", "1,2,99999"):
        with pytest.raises(AnnotatorError, match="is no choice of bands"):
            parse_bands(text)
    assert parse_bands("5") == (5, 5, 5) and parse_bands(" 4, 3,2") == (4, 3, 2)


def test_import_and_bands_commands_report_skipped_images_and_the_band_choice(tmp_path, tiles, annotator):
    said = annotator("import", tmp_path / "new", tiles, "--yes").stdout
    assert "1 image added" in said and "13 bands of 16 bits; which three to show is not known" in said
    said = annotator("bands", tmp_path / "new", "4,3,2").stdout
    assert "1 image of 13 bands: shown by bands 4,3,2." in said
    assert "2 images added that had waited for it" in said
    assert (
        "Of images that do not name red, green and blue, 4,3,2 are shown."
        in annotator("bands", tmp_path / "new").stdout
    )


def test_multiband_images_are_added_only_after_init_or_the_bands_command_chose_bands(tmp_path, tiles, annotator):
    (tiles / "plain.png").unlink()
    assert "init --bands 3,2,1" in annotator("init", tmp_path / "one", "--images", tiles, code=1).stderr
    assert "2 images added" in annotator("init", tmp_path / "one", "--images", tiles, "--bands", "3,2,1").stdout
    assert "0 images added" in annotator("import", tmp_path / "two", tiles, "--yes").stdout
    assert "2 images added" in annotator("bands", tmp_path / "two", "4,3,2").stdout
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.tif").write_bytes(tiff(values_of(5)).getvalue()[:90])
    assert "No image of" in annotator("import", tmp_path / "three", tmp_path / "broken", "--yes", code=1).stderr
    assert not (tmp_path / "three").exists()
