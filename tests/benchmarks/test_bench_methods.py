"""Tiny comparisons of methods: that the figures are what they are called, and that nothing is done twice."""

import json
import math

import numpy as np
import pytest
from harness.pictured_sets import colored
from PIL import Image
from typer.testing import CliRunner

from annotator.benchmark.datasets import Part, load_dataset
from annotator.benchmark.datasets.dataset import build_official_dataset
from annotator.benchmark.first_named_class import RANDOM_NAMING
from annotator.benchmark.methods import finished_results, tune
from annotator.benchmark.methods.cells import Cell, Trainings
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.data import join_parts
from annotator.benchmark.methods.epochs import best_file, delete_files, state_file
from annotator.benchmark.methods.finetune import Network, make_network_recipe
from annotator.benchmark.methods.methods_comparison import build_methods_report, measure_methods
from annotator.benchmark.methods.task import REPORTED_FIGURES, Choice, Task, Trained, make_task
from annotator.benchmark.methods.trainers import train_network
from annotator.benchmark.plots import draw_comparison
from annotator.benchmark.reports import format_markdown
from annotator.cli import app
from annotator.errors import AnnotatorError
from spmll.methods import METHODS
from spmll.statistics.metrics import average_precision

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]

SMALL = "efficientnet_lite0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return colored(tmp_path_factory.mktemp("set"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One folder of finished work for all tests: features are made once."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def options(kept):
    return Options(("an", "role+linear_init", "oracle"), shares=(1.0, 0.4), seeds=2, backbone=SMALL, work=kept)


@pytest.fixture(scope="module")
def result(folder, options):
    return measure_methods(*folder, options=options, command="annotator bench methods ...")


def test_result_has_one_row_of_all_metrics_per_method_and_fraction_of_labeled_images(result):
    assert result["bench"] == "methods"
    assert [(row["method"], row["share"]) for row in result["rows"]] == [
        (name, share) for share in (0.4, 1.0) for name in ("an", "role+linear_init", "oracle")
    ]
    for row in result["rows"]:
        for key in REPORTED_FIGURES:
            assert math.isfinite(row[key]) and row[f"{key}_std"] >= 0
            assert key == "seconds" or 0 <= row[key] <= 1
    setting = result["setting"]
    assert setting["train"] + setting["val"] + setting["test"] == setting["images"] == 30
    assert setting["classes"] == 4 and setting["device"] in ("cpu", "cuda") and setting["trials"] == 1
    assert setting["labelled"]["0.4"] == [round(0.4 * setting["train"])] * 2
    json.dumps(result, allow_nan=False)


def test_oracle_with_full_labels_beats_assume_negative_on_withheld_positives(result):
    found = {(row["method"], row["share"]): row["hidden_ap"] for row in result["rows"]}
    assert found["oracle", 1.0] > found["an", 1.0] > result["setting"]["chance"]["1"]


def test_rerun_reuses_finished_results_and_trains_only_new_methods(result, folder, options, capsys):
    again = measure_methods(*folder, options=options)
    assert again["rows"] == result["rows"]
    assert capsys.readouterr().err.count("(done before)") == 12
    more = Options(("gr", "an"), shares=(1.0,), seeds=2, backbone=SMALL, work=options.work)
    rows = measure_methods(*folder, options=more)["rows"]
    said = capsys.readouterr().err
    assert said.count("(done before)") == 2 and "embedding" not in said
    assert rows[1] == result["rows"][3]


def test_stored_result_is_keyed_by_a_hash_of_the_source_modules_it_uses():
    modules = finished_results.find_modules("em_apl", "linear")
    assert {"spmll.methods.published.em_apl", "spmll.methods.base", "spmll.losses.entropy_maximization"} <= set(modules)
    assert {"spmll.linear.training", "spmll.statistics.metrics", "spmll.trainers.linear"} <= set(modules)
    assert "spmll.methods" not in modules and "spmll.methods.published.gr" not in modules
    assert "spmll.finetune.fit_network" in finished_results.find_modules("an", "finetune")
    assert finished_results.hash_sources("an", "linear") != finished_results.hash_sources("em_apl", "linear")


@pytest.mark.slow
def test_no_split_option_trains_on_all_images_and_reports_the_last_epoch(folder, tmp_path):
    options = Options(("an", "em_apl", "auto"), shares=(0.75,), seeds=2, backbone=SMALL, work=tmp_path, no_split=True)
    result = measure_methods(*folder, options=options, command="bench")
    setting = result["setting"]
    assert (setting["train"], setting["val"], setting["test"]) == (30, 0, 0)
    # 56 labels in 120 cells; 22 images (of 30, rounded to even) were clicked once.
    assert setting["labelled"] == {"0.75": [22, 22]} and setting["labels_an_image"] == round(56 / 30, 4)
    assert setting["chance"]["0.75"] == pytest.approx((56 - 22) / (120 - 22), abs=1e-4)
    for row in result["rows"]:
        assert 0 < row["hidden_ap"] <= 1 and row["hidden_ap_std"] >= 0 and 0 <= row["precision_100"] <= 1
        assert row["epoch"] == [METHODS[row["method"]].epochs] * 2
        assert not {"test_map", "ece", "val_map"} & set(row), "there are no images to measure them on"
    markdown = format_markdown(build_methods_report(result))
    assert "| method | hidden AP |" in markdown and "| `auto` |" in markdown
    draw_comparison(result, tmp_path / "points.png")
    for options in (Options(trials=2, no_split=True), Options(regime="finetune", no_split=True)):
        with pytest.raises(AnnotatorError, match="no validation images"):
            options.check_and_resolve()


@pytest.mark.slow
def test_tuning_spends_the_same_number_of_trials_on_every_method(result, folder, kept, capsys):
    chosen = Options(("an", "role"), shares=(1.0,), seeds=1, trials=3, backbone=SMALL, work=kept)
    rows = measure_methods(*folder, options=chosen)["rows"]
    assert [len(row["trial_scores"]) for row in rows] == [3, 3]
    assert capsys.readouterr().err.count("trial:") == 6
    for row in rows:
        best = tune.draw_trials(row["method"], 3)[int(np.argmax(row["trial_scores"]))]
        assert row["chosen"]["lr"] == best.lr and row["chosen"]["parameters"] == best.parameters


@pytest.mark.slow
def test_method_without_tunable_parameters_gets_no_trials_and_reports_its_defaults(result, folder, kept, capsys):
    assert [name for name, method in METHODS.items() if method.skips_validation] == ["auto"] and not METHODS[
        "auto"
    ].tunable
    chosen = Options(("auto", "an"), shares=(0.4,), seeds=1, trials=3, epochs=2, backbone=SMALL, work=kept)
    auto, an = measure_methods(*folder, options=chosen)["rows"]
    said = capsys.readouterr().err
    assert said.count("trial: an has") == 3 and "[5/5]" in said  # two results and three trials
    assert "trial: auto" not in said and "embedding" not in said
    assert auto["trial_scores"] == [] and Choice(**auto["chosen"]) == Choice() and len(an["trial_scores"]) == 3
    assert auto["epoch"] == [2] and all(math.isfinite(auto[key]) for key in (*REPORTED_FIGURES, "val_map"))


def test_tuning_trials_start_with_defaults_and_share_optimizer_settings_across_methods():
    for name, method in METHODS.items():
        some = tune.draw_trials(name, 8)
        assert some[0] == Choice() and some[:4] == tune.draw_trials(name, 4)
        assert [(one.lr, one.epochs, one.batch) for one in some] == [
            (one.lr, one.epochs, one.batch) for one in tune.draw_trials("an", 8)
        ]
        for one in some[1:]:
            assert set(one.parameters) == set(method.tunable)
            assert all(value in method.tunable[key] for key, value in one.parameters.items())


def test_tuning_chooses_the_best_trial_and_skips_trials_a_method_refuses(tmp_path):
    choices = tune.draw_trials("an", 4)
    best, scores = tune.choose_best(choices, [0.2, 0.5, 0.0, 0.5])
    assert scores == [0.2, 0.5, 0.0, 0.5] and best == choices[1]

    def refuses(*what):
        raise ValueError("these two do not go together")

    trainings = Trainings(refuses, {(1.0, RANDOM_NAMING): [None]})
    refused = trainings.compute_result(Cell("trial", "an", 1.0, 0, best), tmp_path)
    assert refused == {"refused": "these two do not go together", "val_map": 0.0}
    for cell in (Cell("trial", "an", 1.0, 0, Choice()), Cell("result", "an", 1.0, 0, best)):
        with pytest.raises(ValueError, match="do not go together"):
            trainings.compute_result(cell, tmp_path)


def test_hidden_ap_covers_all_unanswered_labels_also_of_unlabeled_images():
    truth = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]], bool)
    labels = np.array([[1, 0, 0], [0, 0, 0]], np.int8)
    task = Task(truth, np.array([0, 1]), np.array([2]), np.array([3]), labels, False)
    probabilities = np.array([[0.9, 0.2, 0.3], [0.4, 0.8, 0.1], [0.5, 0.5, 0.5], [0.1, 0.7, 0.2]])
    figures = task.compute_figures(Trained(lambda rows: probabilities[rows], 1, 0.5, 0.1))
    # Unanswered: .2 (there), .3, .4, .8 (there), .1 (there): all but the one cell that was marked.
    assert figures["hidden_ap"] == pytest.approx(average_precision([0.2, 0.3, 0.4, 0.8, 0.1], [1, 0, 0, 1, 1]))
    assert figures["precision_100"] == pytest.approx(3 / 5) and task.compute_chance() == pytest.approx(3 / 5)
    assert figures["test_map"] == 1.0 and figures["ece"] == pytest.approx((0.1 + 0.3 + 0.2) / 3)
    assert task.labeled_places.tolist() == [0]
    assert task.get_labels(True).tolist() == [[1, 1, -1]] and task.get_labels(False).tolist() == [[1, 0, 0]]


def test_published_dataset_keeps_its_labels_across_seeds_and_scores_empty_classes(folder):
    chance = np.random.default_rng(3)
    train, test = (Part((folder[1],) * rows, chance.random((rows, 6)) < 0.5) for rows in (40, 10))
    paper = build_official_dataset("voc", tuple("abcdef"), train, test, None, ())
    tasks = [make_task(paper, 1.0, seed) for seed in (0, 1)]
    np.testing.assert_array_equal(tasks[0].labels, paper.observed)
    np.testing.assert_array_equal(tasks[1].labels, paper.observed)
    assert tasks[0].empty_as_zero and len(tasks[0].train) == 32
    some = [make_task(paper, 0.25, seed) for seed in (0, 1)]
    assert [len(task.labeled_places) for task in some] == [8, 8] and (some[0].labels != some[1].labels).any()
    own = [make_task(load_dataset("folder", *folder), 1.0, seed) for seed in (0, 1)]
    assert (own[0].labels != own[1].labels).any() and not own[0].empty_as_zero


def test_report_table_names_every_method_and_the_plot_is_written(result, tmp_path):
    markdown = format_markdown(build_methods_report(result))
    for name in ("an", "role+linear_init", "oracle"):
        assert f"| `{name}` |" in markdown
    assert "`annotator bench methods ...`" in markdown and "Labels on 40 %" in markdown
    draw_comparison(result, tmp_path / "curves.png")
    one = result | {"rows": [row for row in result["rows"] if row["share"] == 1.0]}
    draw_comparison(one, tmp_path / "points.svg")
    assert Image.open(tmp_path / "curves.png").size[0] > 500
    assert (tmp_path / "points.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_salient_clicks_are_compared_with_random_clicks_per_method(result, folder, kept, tmp_path):
    boxes = tmp_path / "boxes.csv"
    labels = [line.split(",") for line in folder[1].read_text().splitlines()[1:]]
    rows = [f"{name},{shows.split('|')[0]},0,0,60,60" for name, shows in labels]
    boxes.write_text("image,class,left,top,right,bottom\n" + "\n".join(rows) + "\n")
    words = ["bench", "methods", "--images", folder[0], "--truth", folder[1], "--boxes", boxes]
    words += ["--methods", "oracle,an"]
    words += ["--seeds", 1, "--share", "0.4,1.0", "--clicks", "salient", "--salience", "2,0.5", "--backbone", SMALL]
    words += ["--work", kept, "--json", "--plot", tmp_path / "a.png", "--markdown", tmp_path / "a.md"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    compared = json.loads(done.stdout)
    ways = ("random", "salient 0.5", "salient 2")
    assert [(row["share"], row["clicks"], row["method"]) for row in compared["rows"]] == [
        (share, way, name) for share in (0.4, 1.0) for way in ways for name in ("oracle", "an")
    ]
    found = {(row["share"], row["clicks"], row["method"]): row for row in compared["rows"]}
    for (share, way, name), row in found.items():
        if way == "random":
            assert "hidden_ap_over_random" not in row
        else:
            more = row["hidden_ap"] - found[share, "random", name]["hidden_ap"]
            assert row["hidden_ap_over_random"] == pytest.approx(more, abs=1e-5)
    assert any("have no box: they count as of usual size" in note for note in compared["setting"]["notes"])
    assert set(compared["setting"]["named"]) == set(ways)
    told = (tmp_path / "a.md").read_text()
    assert (
        "hidden mAP by first clicks, 40 % labeled" in told
        and "Labels on 100 % of the training images, salient 2" in told
    )
    assert Image.open(tmp_path / "a.png").size[0] > 500


def test_bench_methods_options_error_lists_all_problems_together(tmp_path):
    wrong = Options(
        ("em_appl",), "liner", (0.0, 2.0), 0, trials=0, work=tmp_path, clicks=("salent",), strengths=(11.0,)
    )
    with pytest.raises(AnnotatorError) as caught:
        wrong.check_and_resolve()
    told = str(caught.value)
    for part in (
        "Did you mean 'em_apl'",
        "Did you mean 'linear'",
        "not 0",
        "not 2",
        "seeds is 0",
        "trials is 0",
        "'salient'",
        "not 11",
    ):
        assert part in told, part


def test_methods_option_all_selects_the_methods_that_the_regime_and_backbone_support(tmp_path):
    assert "auto" not in Options(("all",), "finetune", work=tmp_path).check_and_resolve().methods
    assert "auto" in Options(("all",), work=tmp_path).check_and_resolve().methods
    with_texts = Options(("all",), backbone="open_clip:PE-Core-T-16-384/meta", work=tmp_path).check_and_resolve()
    assert set(with_texts.methods) - set(Options(("all",), work=tmp_path).check_and_resolve().methods) == {
        "vlpl",
        "gr+names",
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"images": True}, "both --images and --truth"),
        ({"images": True, "truth": True, "dataset": "voc", "root": True}, "one set at a time"),
        ({"dataset": "voc"}, "needs --root"),
    ],
)
def test_incompatible_dataset_options_are_refused(folder, tmp_path, words, told):
    known = {"images": folder[0], "truth": folder[1], "root": tmp_path, "dataset": "voc"}
    with pytest.raises(AnnotatorError, match=told):
        measure_methods(**{key: known[key] for key in words}, options=Options(work=tmp_path))


@pytest.fixture(scope="module")
def odd(tmp_path_factory, folder):
    """Folders and truths that people point at by mistake, by name."""
    place, files = tmp_path_factory.mktemp("odd"), sorted(folder[0].iterdir())
    for name, count in (("three", 3), ("none", 0)):
        (place / name).mkdir()
        for file in files[:count]:
            (place / name / file.name).write_bytes(file.read_bytes())
    truths = {
        "three.csv": "".join(f"{file.name},red\n" for file in files[:3]),
        "unknown.csv": "elsewhere.png,red\n00.png,red\n",
        "first.csv": "00.png,red\n",
        "nothing.csv": "",
        "one_class.csv": "".join(f"{file.name},red\n" for file in files),
    }
    for name, rows in truths.items():
        (place / name).write_text("image,labels\n" + rows)
    return place


@pytest.mark.parametrize(
    ("images", "truth", "words", "told"),
    [
        ("three", "three.csv", (), "too few images to be split: of 3,"),
        ("none", "three.csv", (), "There are no images in"),
        ("nowhere", "three.csv", (), "There is no folder"),
        ("set", "unknown.csv", (), "no image is called 'elsewhere.png'"),
        ("set", "nothing.csv", (), "no label 'present'"),
        ("set", "first.csv", (), "No image shows anything in: "),
        ("set", "one_class.csv", (), "At a share of 1 every label is known"),
        ("set", "truth", ("--share", "0.001"), "is no image"),
        ("set", "truth", ("--share", "nan"), "not nan"),
        ("set", "truth", ("--seeds", "0"), "seeds is 0"),
        ("set", "truth", ("--regime", "both"), "no regime is called 'both'"),
        ("set", "truth", ("--methods", ","), "at least one method"),
        ("set", "truth", ("--regime", "finetune", "--methods", "auto"), "auto learns from a frozen network"),
        (
            "set",
            "truth",
            ("--methods", "an,vlpl"),
            "vlpl needs scores of the names of classes by a text-image network, and",
        ),
        ("set", "truth", ("--regime", "finetune", "--methods", "gr+names"), "gr+names learns from a frozen network"),
        ("set", "truth", ("--device", "gpu"), "device 'gpu' cannot be used here"),
        ("set", "truth", ("--work", "FILE"), "is a file; it must be a folder"),
    ],
)
def test_bench_methods_refuses_unusable_images_truth_or_options_before_embedding(
    odd, folder, tmp_path, recwarn, capsys, images, truth, words, told
):
    images = folder[0] if images == "set" else odd / images
    truth = folder[1] if truth == "truth" else odd / truth
    line = ["bench", "methods", "--images", images, "--truth", truth, "--work", tmp_path, "--backbone", SMALL, *words]
    line = [str(odd / "first.csv") if word == "FILE" else str(word) for word in line]
    done = CliRunner().invoke(app, line)
    assert isinstance(done.exception, AnnotatorError) and told in str(done.exception)
    assert "embedding" not in done.stderr
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


def test_metrics_are_finite_for_one_class_and_for_more_classes_than_images(odd, folder, tmp_path):
    names = sorted(file.name for file in folder[0].iterdir())
    rows = [f"{name},{number}|{number + 1}|{number % 7}\n" for number, name in enumerate(names)]
    for truth, share in (("image,labels\n" + "".join(rows), 1.0), ((odd / "one_class.csv").read_text(), 0.5)):
        (tmp_path / "truth.csv").write_text(truth)
        chosen = Options(("an", "opml_sp"), shares=(share,), seeds=1, epochs=2, backbone=SMALL, work=tmp_path)
        for row in measure_methods(folder[0], tmp_path / "truth.csv", options=chosen)["rows"]:
            assert all(math.isfinite(row[key]) for key in (*REPORTED_FIGURES, "val_map")), row


def test_methods_command_prints_json_and_writes_plot_and_markdown(folder, kept, tmp_path, result):
    words = ["bench", "methods", "--images", folder[0], "--truth", folder[1], "--methods", "oracle,an", "--seeds", 2]
    words += ["--share", "0.4,1.0", "--backbone", SMALL, "--work", kept, "--json"]
    words += ["--plot", tmp_path / "a.png", "--markdown", tmp_path / "a.md"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert [row["method"] for row in printed["rows"]] == ["oracle", "an", "oracle", "an"]
    assert printed["rows"][1] == result["rows"][0]
    assert (tmp_path / "a.png").exists() and "hidden AP" in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--share", "0.5,half,x"], "'half' is not a number"),
        (["--clicks", "salient", "--salience", "much"], "--salience takes numbers"),
        (["--clicks", ","], "one way of clicking"),
        (["--boxes", "a.csv"], "give --images and --truth as well"),
        (["--plot", "nowhere/a.png"], "its folder must exist"),
        (["--plot", "a.bmp"], ".png, .svg, .pdf"),
        (["--backbone", "resnet5000", "--images", "IMAGES", "--truth", "TRUTH"], "resnet5000"),
    ],
)
def test_methods_command_refuses_invalid_option_values(folder, tmp_path, words, told):
    known = {"IMAGES": str(folder[0]), "TRUTH": str(folder[1])}
    words = ["bench", "methods", "--work", str(tmp_path), *(known.get(word, word) for word in words)]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, AnnotatorError) and told in str(done.exception)


@pytest.mark.slow
def test_method_that_needs_feature_maps_trains_on_them(folder, kept):
    maps = Options(("lagc",), seeds=1, epochs=2, backbone=SMALL, work=kept)
    [row] = measure_methods(*folder, options=maps)["rows"]
    assert 0 < row["hidden_ap"] <= 1 and row["epoch"][0] in (1, 2)


@pytest.mark.slow
def test_end_to_end_training_yields_a_result_row(folder, kept):
    chosen = Options(
        ("an",), "finetune", seeds=1, backbone=SMALL, epochs=1, size=64, device="cpu", linear_init=True, work=kept
    )
    found = measure_methods(*folder, options=chosen)
    assert found["setting"]["regime"] == "finetune" and 0 < found["rows"][0]["test_map"] <= 1
    assert not list(kept.glob("*.state")) and not list(kept.glob("*.best"))


@pytest.mark.slow
def test_end_to_end_training_resumes_after_an_interruption_with_the_same_result(folder, tmp_path):
    dataset = load_dataset("folder", *folder)
    task, paths = make_task(dataset, 0.4, 0), join_parts(dataset).paths
    network = Network(SMALL, 64, "cpu", epochs=2)

    class Killed(Task):
        def val_map(self, probabilities):
            if len(list(tmp_path.glob("cut*.best"))) and not self.__dict__.setdefault("once", []):
                self.once.append(True)
                raise KeyboardInterrupt
            return super().val_map(probabilities)

    whole = train_network("an", Choice(), task, paths, network, 0, tmp_path / "whole-0.4")
    with pytest.raises(KeyboardInterrupt):
        train_network("an", Choice(), Killed(**vars(task)), paths, network, 0, tmp_path / "cut-0.4")
    cut = train_network("an", Choice(), task, paths, network, 0, tmp_path / "cut-0.4")
    assert (cut.epoch, cut.val_map) == (whole.epoch, whole.val_map)
    np.testing.assert_array_equal(cut.probabilities(task.test), whole.probabilities(task.test))
    assert state_file(tmp_path / "cut-0.4").exists() and best_file(tmp_path / "cut-0.4").exists()
    delete_files(tmp_path / "cut-0.4")
    assert not list(tmp_path.glob("cut*"))


def test_published_dataset_uses_the_settings_of_its_paper():
    cub = make_network_recipe("gr", Choice(), Network("resnet50", 448, "cpu", "cub"))
    published = METHODS["gr"].published["cub"]
    assert cub == published and published.parameters["q3"] == 1.5
    changed = make_network_recipe(
        "gr", Choice(2.0, 0.5, 4, {"q3": 1.0}), Network("resnet50", 448, "cpu", "cub", epochs=6)
    )
    assert (changed.lr, changed.epochs, changed.batch) == (2 * published.lr, 3, 4)
    assert changed.parameters == published.parameters | {"q3": 1.0}
