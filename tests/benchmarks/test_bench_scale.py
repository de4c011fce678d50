"""`bench scale` at a tiny size: every step runs, counts honestly, and is refused where it cannot end."""

import io
import json
import math
import tempfile
from pathlib import Path

import pytest
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.store.pictures.decoding import check_image
from annotator.store.pictures.jpeg import parse_whole_jpeg
from benchmarks.__main__ import parse_image_counts
from benchmarks.scale import room, scale_measurement
from benchmarks.scale.growth import extrapolate_growth
from benchmarks.scale.photo_files import write_photos
from benchmarks.scale.scale_measurement import REPORTED_STEPS, measure


def _left() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("annotator-bench-*"))


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.training
def test_scale_measurement_runs_all_steps_and_reuses_stored_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    result = measure((1000,), 5, work=tmp_path / "work")
    (size,) = result["sizes"]
    values = size["figures"] | size["ratios"]
    assert all(math.isfinite(value) for value in values.values())
    assert all(values[f"{step}_seconds"] > 0 for step in REPORTED_STEPS)
    if Path("/proc/self/status").exists():
        assert all(values[f"{step}_resident_mb"] >= values[f"{step}_peak_mb"] > 5 for step in REPORTED_STEPS)
    assert values["register_over_floor"] > 1 and values["register_unchanged_seconds"] > 0
    assert values["train_labeled_images"] == 1000 and values["train_unbiased_answers"] > 500
    for name in ("first", "next"):
        parts = [values[f"train_{name}_{part}_seconds"] for part in ("reading_labels", "models", "publishing")]
        assert max(parts) > 0 and sum(parts) <= values[f"train_{name}_seconds"] + 0.1
    assert values["train_hidden_ap"] > 20 and values["train_floor_products_seconds"] >= 0
    assert values["page_key_p95_ms"] >= values["page_decide_p50_ms"] > 0
    assert values["decide_per_second"] > 1 and values["export_mb"] > 0
    parts = [values[f"{kind}_mb"] for kind in ("tables", "features", "runs")]
    assert min(parts) > 0 and sum(parts) <= values["project_mb"] + 0.01
    assert not _left()
    # Not measured again: no step exists any more.
    monkeypatch.setattr(scale_measurement, "STEP_MODULE", "nowhere")
    assert measure((1000,), 5, work=tmp_path / "work") == result == json.loads(json.dumps(result))
    (table,) = scale_measurement.build_scale_report(result).tables
    assert table.headings[0] == "1,000 images" and [row[0] for row in table.rows] == list(REPORTED_STEPS)


@pytest.mark.slow
@pytest.mark.process
def test_bench_scale_register_step_runs_alone_and_a_failed_step_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (size,) = measure((1000,), 5, kilobytes=3, steps=["register"])["sizes"]
    assert size["figures"]["register_per_second"] > 0 and "embed_seconds" not in size["figures"]
    with pytest.raises(AnnotatorError, match=r"The step (rows|embed) failed"):
        measure((-1000,), 5, steps=["export"])
    assert not _left()


@pytest.mark.parametrize("kilobytes", [1, 3, 40, 150])
def test_generated_photos_have_the_requested_size_and_differ(tmp_path, kilobytes):
    write_photos(tmp_path, 3, kilobytes)
    contents = [path.read_bytes() for path in sorted(tmp_path.rglob("*.jpg"))]
    assert len(set(contents)) == 3
    assert all(abs(len(content) - 1000 * kilobytes) < 200 + 30 * kilobytes for content in contents)
    facts = [check_image(io.BytesIO(content)) for content in contents]
    first, second = (fact.capture.captured_at for fact in facts[:2])
    assert first and second == first + 60 and parse_whole_jpeg(contents[0])
    with Image.open(io.BytesIO(contents[0])) as image:
        assert image.size == (facts[0].width, facts[0].height)
        image.load()


def test_scale_measurement_beyond_the_disk_space_is_refused_before_creating_files(monkeypatch):
    before = _left()
    with pytest.raises(
        AnnotatorError, match=r"1,000,000,000,000 images x 80 classes would take [\d,]+\.\d GB in .* free"
    ):
        measure((1000, 10**12))
    assert _left() == before
    bare = room.compute_needed_bytes(1000, 5, 100, ["photos", "register"])
    assert 100_000_000 < bare < room.compute_needed_bytes(1000, 5, 100, ["photos", "register", "embed", "train"])


def test_invalid_image_counts_and_steps_are_refused():
    with pytest.raises(AnnotatorError, match=r"No step is called 'fly'. There is: register, embed"):
        measure((1000,), steps=["fly", "train"])
    assert parse_image_counts("1000, 250000") == (1000, 250000)
    for wrong in ("", "999", "1e6", "1000,x", "-5000"):
        with pytest.raises(AnnotatorError, match="--images takes whole numbers of at least 1,000"):
            parse_image_counts(wrong)


def test_duration_extrapolation_fits_linear_growth_or_an_exponent_for_faster_growth():
    sizes = [1000, 2000, 4000]
    line = extrapolate_growth(sizes, [3 + 0.01 * size for size in sizes], 100_000)
    assert line["predicted"] == pytest.approx(1003) and line["a_million"] == pytest.approx(10_000)
    square = extrapolate_growth(sizes, [size**2 for size in sizes], 100_000)
    assert square["exponent"] == pytest.approx(2) and square["predicted"] == pytest.approx(1e10)
    assert extrapolate_growth(sizes, [5, 5, 5], 10**7)["predicted"] == pytest.approx(5)
    assert extrapolate_growth(sizes, [5, 4, 3], 10**7)["a_million"] == 0
