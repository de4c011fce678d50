"""`annotator bench collections`: images made by recipe, constants chosen on the others, and one tiny comparison."""

import csv
import json

import numpy as np
import pytest
from harness.short_forms import mark_slow_after
from PIL import Image
from typer.testing import CliRunner

from annotator.benchmark.collections import recipes, small_objects
from annotator.benchmark.collections.collections_comparison import measure_collections, summarize_cells
from annotator.benchmark.collections.searched_settings import SEARCH_SPACE, choose_left_out_settings, draw_settings
from annotator.benchmark.methods.comparison_options import Options
from annotator.cli import app
from annotator.errors import AnnotatorError
from spmll.methods.auto import Auto


@pytest.mark.parametrize("name", mark_slow_after(3, (*recipes.COLLECTION_NAMES, *recipes.KEPT_BACK_NAMES)))
def test_generated_image_collection_is_reproducible_and_labels_every_image(tmp_path, name):
    first, longer = tmp_path / "first", tmp_path / "longer"
    recipes.make_collection(first, name, 2)
    recipes.make_collection(longer, name, 3)
    for image in ("0000.jpg", "0001.jpg"):
        assert (first / "images" / image).read_bytes() == (longer / "images" / image).read_bytes()
    with (longer / "truth.csv").open() as file:
        shown = {row["image"]: row["labels"].split("|") for row in csv.DictReader(file)}
    assert list(shown) == [path.name for path in sorted((longer / "images").iterdir())]
    assert all(labels and len(labels) == len(set(labels)) and "" not in labels for labels in shown.values())


@pytest.mark.slow
def test_rare_digits_recipe_draws_its_first_class_most_often_and_omits_no_class():
    recipe = recipes.get_recipes()["rare_digits"]
    shown = [name for seed in range(300) for name in recipes.compose_image(recipe, np.random.default_rng(seed))[1]]
    counts = [shown.count(name) for name in recipe.classes]
    assert counts[0] == max(counts) > 10 * counts[-1] > 0


def test_collections_used_to_choose_constants_exclude_the_four_held_out_ones():
    assert len(recipes.KEPT_BACK_NAMES) == 4 and not set(recipes.KEPT_BACK_NAMES) & set(recipes.COLLECTION_NAMES)


def test_two_collections_of_the_same_name_are_refused(tmp_path):
    (tmp_path / "suits").mkdir()
    with pytest.raises(AnnotatorError, match=r"same name: suits, suits"):
        measure_collections([tmp_path / "suits"], made=("suits",), options=Options(("an",), work=tmp_path / "work"))


def test_leave_one_out_choice_ignores_the_scores_of_the_collection_itself():
    # Of three collections, the second setting is far better on the first and a little worse on the others.
    scores = np.array([[0.5, 0.5, 0.5], [0.9, 0.45, 0.45]])
    assert choose_left_out_settings(scores) == [0, 1, 1]
    assert choose_left_out_settings(np.array([[0.5], [0.9]])) == [0]  # there are no others to choose on


def test_setting_search_starts_with_the_current_constants_of_the_auto_method():
    few, many = draw_settings(3), draw_settings(9)
    assert few == many[:3] and few[0] == {}
    present = vars(Auto())
    assert all(present[name] in values for name, values in SEARCH_SPACE.items())
    for constants in many:
        Auto(**constants)  # refuses what makes no sense


def test_summary_of_leads_over_rival_methods_counts_both_metrics_of_every_row():
    def row(ours: tuple[float, float], best: tuple[float, float]) -> dict:
        return {"hidden_ap": ours[0], "hidden_map": ours[1], "hidden_ap_rival": best[0], "hidden_map_rival": best[1],
                "ece": 0.1, "rare": 2, "rare_honest": 1}  # fmt: skip

    # leads of 0.2, -0.1, 0 and 0.3
    found = summarize_cells([row((0.7, 0.4), (0.5, 0.5)), row((0.5, 0.8), (0.5, 0.5))], "")
    assert found["cells"] == 4 and found["first"] == 0.75
    assert found["lead"] == pytest.approx(0.1) and found["worst"] == pytest.approx(-0.1)
    assert found["near"] == 0.75 and (found["rare"], found["honest"]) == (4, 0.5)


def test_unknown_collection_is_refused_with_the_list_of_known_ones(tmp_path):
    with pytest.raises(AnnotatorError, match=r"No collection is called 'digit'.*digits"):
        measure_collections(made=("digit",))


@pytest.mark.slow
@pytest.mark.training
def test_bench_collections_names_the_best_rival_method_and_its_rerun_trains_nothing(tmp_path):
    words = [
        "bench",
        "collections",
        "--made",
        "sample_data,suits",
        "--images",
        "60",
        "--methods",
        "an,epr",
        "--share",
        "1.0",
    ]
    words += ["--seeds", "1", "--settings", "2", "--backbone", "efficientnet_lite0", "--work", str(tmp_path / "work")]
    words += ["--plot", str(tmp_path / "leads.png"), "--markdown", str(tmp_path / "leads.md"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert [row["collection"] for row in result["rows"]] == ["sample_data", "suits"]
    assert all(row["hidden_ap_rival_is"] in ("an", "epr") for row in result["rows"])
    assert list(result["rare"]) == ["sample_data", "suits"]
    assert all(0 <= honest <= rare for rare, honest in result["rare"].values())
    assert sum(of["best"] for of in result["methods"]) == 4  # two collections, one share, two figures
    # Of two collections, each gets the constants that are better on the other one.
    better = [int(np.argmax([of["scores"][other] for of in result["settings"]])) for other in (1, 0)]
    assert [of["chosen"] for of in result["setting"]["collections"].values()] == better
    assert "| sample_data | 100 % |" in (tmp_path / "leads.md").read_text() and (tmp_path / "leads.png").exists()

    again = CliRunner().invoke(app, words)
    steps = [line for line in again.stderr.splitlines() if line.startswith("[")]
    assert len(steps) == 8 and all(line.endswith("(done before)") for line in steps)
    assert json.loads(again.stdout)["rows"] == result["rows"]


@pytest.mark.slow
def test_small_object_collections_are_reproducible_and_show_every_class(tmp_path):
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
