"""`annotator bench variants`: the made-up collections, how vectors are joined, and one small comparison."""

import csv

import numpy as np
import pytest
from PIL import Image

from annotator.benchmark.variants import passes, small_objects, variant_measurement, variants


def test_made_up_collections_are_the_same_each_time_and_show_what_they_say(tmp_path):
    for name, things in small_objects.SMALL_OBJECT_COLLECTIONS.items():
        for folder in ("first", "second"):
            small_objects.draw_collection(tmp_path / folder / name, name, 30)
        first, second = (tmp_path / folder / name for folder in ("first", "second"))
        assert (first / "truth.csv").read_bytes() == (second / "truth.csv").read_bytes()
        rows = list(csv.DictReader((first / "truth.csv").open()))
        assert {label for row in rows for label in row["labels"].split("|")} == set(things)
        for row in rows:
            assert (first / "images" / row["image"]).read_bytes() == (second / "images" / row["image"]).read_bytes()
            assert Image.open(first / "images" / row["image"]).size == (
                small_objects.IMAGE_SIDE_PIXELS,
                small_objects.IMAGE_SIDE_PIXELS,
            )


def test_joined_vectors_weigh_alike_and_whitening_makes_variances_more_alike():
    random = np.random.default_rng(0)
    small, large = random.random((6, 10, 4)).astype(np.float16), 100 * random.random((6, 10, 4)).astype(np.float16)
    joined = variants.join_vectors([small, large]).astype(float)
    assert np.allclose(np.linalg.norm(joined[:, :, :4], axis=2), np.linalg.norm(joined[:, :, 4:], axis=2), rtol=0.01)
    rows = np.abs(random.normal(0, np.linspace(0.1, 3, 8), (50, 10, 8)))
    given = np.concatenate([rows, rows, rows], 2).astype(np.float16)

    def spread(vectors: np.ndarray) -> float:
        roots = np.sqrt(np.abs(vectors)) * np.sign(vectors)
        values = np.linalg.eigvalsh(np.cov(roots.reshape(-1, 8).astype(float).T))
        return values[-1] / values[0]

    plain, some, more = (
        spread(make([given]))
        for make in (variants.build_pooling("average"), variants.build_whitening(0.25), variants.build_whitening(0.5))
    )
    assert plain > some > more > 1


@pytest.mark.training
@pytest.mark.slow
def test_variants_are_compared_on_the_same_images_and_vectors_are_kept(tmp_path):
    chosen = (
        variants.DEFAULT_VARIANT,
        variants.Variant("small", (passes.Pass(variants.SMALLER_NETWORK, 128),), lambda parts: parts[0]),
    )
    result = variant_measurement.measure(most=24, drawn=24, seeds=1, work=tmp_path, variants=chosen)
    assert result["setting"]["images"] == {"sample_data": 24, "from_above": 24, "on_a_table": 24}
    default, small = result["rows"]
    assert default["times"] == 1 and small["times"] < 1
    assert default["mean"] == pytest.approx(np.mean([default[name] for name in result["setting"]["images"]]))
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(kept) == 6
    again = variant_measurement.measure(most=24, drawn=24, seeds=1, work=tmp_path, variants=chosen)
    assert kept == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert [row["mean"] for row in again["rows"]] == [row["mean"] for row in result["rows"]]
    headings, rows = variant_measurement.build_table(result)
    assert len(headings) == len(rows[0]) and rows[0][1] == "1.00"
