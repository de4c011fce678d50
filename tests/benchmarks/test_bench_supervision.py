"""What `bench methods` changes of methods and tells of images, and the figures it reports when asked."""

import json

import numpy as np
import pytest
import torch
from harness.pictured_sets import colored, pictured
from harness.tiny_sets import make_voc, whole
from typer.testing import CliRunner

from annotator.benchmark.datasets import Part
from annotator.benchmark.datasets.dataset import DataSet, build_official_dataset
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.methods_comparison import build_methods_report
from annotator.benchmark.methods.supervision import Supervision, draw_training_labels, draw_validation_positives
from annotator.benchmark.methods.task import Task, Trained, make_task
from annotator.benchmark.reports import format_markdown
from annotator.cli import app
from annotator.errors import AnnotatorError
from spmll.labels import ABSENT, PRESENT
from spmll.methods import METHODS, make_method
from spmll.single_positive_sampling import sample_single_positives
from spmll.statistics.metrics import precision_and_recall_at, wasserstein_distance

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]

SMALL = "efficientnet_lite0"


@pytest.fixture(scope="module")
def voc(tmp_path_factory):
    return pictured(make_voc(tmp_path_factory.mktemp("voc")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return colored(tmp_path_factory.mktemp("set"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One folder of finished work for all tests: features are made once."""
    return tmp_path_factory.mktemp("work")


def compared(data, kept, *words) -> dict:
    where = (
        ["--images", data[0], "--truth", data[1]] if isinstance(data, tuple) else ["--dataset", "voc", "--root", data]
    )
    line = ["bench", "methods", *where, "--backbone", SMALL, "--work", kept, "--seeds", 1]
    done = CliRunner().invoke(app, [str(word) for word in (*line, "--epochs", 2, "--json", *words)])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_bench_methods_set_option_changes_the_constants_of_a_trained_method(voc, kept):
    plain = compared(voc, kept, "--methods", "an")["rows"][0]
    smoothed = ("--methods", "an_ls", "--set", "an_ls.positive=0")
    changed = compared(voc, kept, *smoothed, "--set", "an_ls.negative=0")
    assert changed["rows"][0]["chosen"]["parameters"] == {"positive": 0.0, "negative": 0.0}
    assert "Changed constants: an_ls.positive=0, an_ls.negative=0." in build_methods_report(changed).description
    figures = ("test_map", "hidden_ap", "ece", "val_map")
    assert [changed["rows"][0][key] for key in figures] == [plain[key] for key in figures]
    half = compared(voc, kept, *smoothed)["rows"][0]
    assert [half[key] for key in figures] != [plain[key] for key in figures]


def test_set_option_error_lists_all_invalid_method_constants_together(tmp_path):
    words = ("gr", "grr.q3=1", "an.eps=0", "gr.q4=1", "em.alpha=much", "gr.sigma=-1")
    with pytest.raises(AnnotatorError) as caught:
        Options(("gr", "em"), changed=words, work=tmp_path).check_and_resolve()
    told = str(caught.value)
    assert "'gr' is not of the form NAME.PARAMETER=VALUE" in told
    assert "no method is called 'grr'. Did you mean 'gr'" in told
    assert "an, which does not take part" in told
    assert "no parameter is called 'q4'" in told and "q1, q2, q3" in told
    assert "alpha = 'much' must be a number" in told
    with pytest.raises(AnnotatorError, match="must both be positive"):
        Options(("gr",), changed=("gr.sigma=-1",), work=tmp_path).check_and_resolve()


def paper_set(images: int = 60, classes: int = 6) -> DataSet:
    chance = np.random.default_rng(3)
    train, test = (Part((None,) * rows, chance.random((rows, classes)) < 0.5) for rows in (images, 10))
    return build_official_dataset("voc", tuple("abcdef")[:classes], train, test, None, ())


def test_drawing_extra_labels_of_a_published_dataset_matches_the_published_code():
    dataset = paper_set()
    rows = dataset.official_rows[0]
    for positives, negatives in ((2, 0), (1, 1), (-1, 0), (3, -1)):
        drawn = draw_training_labels(dataset, 1.0, 0, supervision=Supervision("single", positives, negatives))
        shows = dataset.train.truth.any(1)
        assert np.array_equal(drawn[shows], sample_single_positives(whole(dataset), positives, negatives)[rows][shows])
    full = draw_training_labels(dataset, 1.0, 0, supervision=Supervision("full"))
    assert np.array_equal(full == PRESENT, dataset.train.truth) and np.array_equal(full == ABSENT, ~dataset.train.truth)
    half = draw_training_labels(dataset, 0.5, 0, supervision=Supervision("full"))
    assert (half != 0).all(1).sum() == round(0.5 * len(rows)) and not half[(half == 0).any(1)].any()


def test_drawing_extra_labels_of_a_folder_keeps_the_single_label_and_the_requested_counts():
    dataset = paper_set()
    plain = DataSet(*(getattr(dataset, name) for name in ("name", "classes", "train", "val", "test")), None, None)
    one = draw_training_labels(plain, 0.5, 4)
    more = draw_training_labels(plain, 0.5, 4, supervision=Supervision("single", 2, 1))
    told, truth = (one == PRESENT).any(1), plain.train.truth
    assert (more[one == PRESENT] == PRESENT).all() and not more[~told].any()
    assert np.array_equal((more == PRESENT)[told].sum(1), np.minimum(truth[told].sum(1), 2))
    assert np.array_equal((more == ABSENT)[told].sum(1), np.minimum((~truth[told]).sum(1), 1))
    assert truth[more == PRESENT].all() and not truth[more == ABSENT].any()


def test_each_baseline_method_trains_with_its_declared_number_of_known_absent_labels():
    dataset = paper_set()
    task = make_task(dataset, 1.0, 0, absences={METHODS[name].known_absences for name in ("an", "iu", "iun")})
    truth = task.truth[task.train[task.labeled_places]]
    labels = {name: task.get_labels(False, METHODS[name].known_absences) for name in ("an", "iu", "iun")}
    for given in labels.values():
        assert np.array_equal(given == PRESENT, task.labels[task.labeled_places] == PRESENT)
    assert not (labels["an"] == ABSENT).any() and np.array_equal(labels["iun"] == ABSENT, ~truth)
    assert np.array_equal((labels["iu"] == ABSENT).sum(1), np.minimum((~truth).sum(1), 1))
    assert METHODS["bce_ls"].full_labels and not METHODS["pr"].known_absences


def test_validation_on_observed_labels_counts_unobserved_labels_as_absent():
    truth = np.array([[1, 0], [1, 1], [0, 1], [1, 0]], bool)
    observed = np.array([[1, 0], [0, 0], [0, 1]], bool)
    rows = np.arange(4)
    task = Task(truth, rows[:1], rows[1:], rows[:0], np.array([[1, 0]], np.int8), False, {}, observed, "observed")
    probabilities = np.array([[0.2, 0.9], [0.9, 0.1], [0.3, 0.8]])
    # The one observed positive of the first class ranks last of three, that of the second in the middle.
    assert task.val_map(probabilities) == pytest.approx((1 / 3 + 1 / 2) / 2)
    dataset = paper_set()
    drawn = draw_validation_positives(dataset, 0)
    assert (drawn.sum(1) == dataset.val.truth.any(1)).all() and dataset.val.truth[drawn].all()


def test_training_without_validation_reports_the_last_epoch_and_refuses_tuning(voc, kept):
    row = compared(voc, kept, "--methods", "an", "--validate", "none")["rows"][0]
    assert row["epoch"] == [2] and "val_map" not in row and 0 < row["test_map"] <= 1
    with pytest.raises(AnnotatorError, match="tuning needs validation images"):
        Options(("an",), validate="none", trials=2, work=kept).check_and_resolve()


def test_full_label_training_works_for_every_listed_loss_and_reports_no_hidden_ap(voc, kept):
    result = compared(voc, kept, "--methods", "focal,asl,zlpr,opml,bce_ls", "--labels", "full")
    for row in result["rows"]:
        assert "hidden_ap" not in row and 0 < row["test_map"] <= 1
    markdown = format_markdown(build_methods_report(result))
    assert "Known of a labeled training image: all labels." in markdown and "| `zlpr` |" in markdown


def test_requested_metrics_appear_in_result_rows_and_reports(folder, voc, kept):
    asked = "train_map,precision@1,recall@3,wasserstein"
    result = compared(folder, kept, "--methods", "iun,iu,pr,ent_min,l1r,l2r,gr_learned", "--measures", asked)
    for row in result["rows"]:
        assert all(0 <= row[key] <= 1 for key in asked.split(",")), row
        assert len(row["separations"][0]) == 2  # one for each epoch
        best = row["separations"][0][row["epoch"][0] - 1]
        assert row["wasserstein"] == pytest.approx(best, abs=1e-5)
    # No image of this set's validation part has an unseen positive.
    assert "wasserstein" not in compared(voc, kept, "--methods", "an", "--measures", asked)["rows"][0]
    markdown = format_markdown(build_methods_report(result))
    assert "| recall@3 |" in markdown and "recall@K: the share" in markdown


def test_supervision_options_error_lists_all_unknown_values_together(tmp_path):
    wrong = Options(
        ("an",), labels="fill", positives=0, negatives=-2, validate="obsreved", measures=("recall@0",), work=tmp_path
    )
    with pytest.raises(AnnotatorError) as caught:
        wrong.check_and_resolve()
    for part in ("'full'", "positives is 0", "negatives is -2", "'observed'", "no measure is called 'recall@0'"):
        assert part in str(caught.value), part
    done = CliRunner().invoke(app, ["bench", "methods", "--positives", "two"])
    assert "--positives takes a number of labels, or all" in str(done.exception)


def test_default_comparison_leaves_out_baseline_methods_unless_named(tmp_path):
    yardsticks = {name for name, method in METHODS.items() if method.yardstick}
    assert {"iun", "iu", "pr", "ent_min", "l1r", "l2r", "bce_ls", "an_ls+linear_init", "gr_learned"} == yardsticks
    assert not yardsticks & set(Options(work=tmp_path).check_and_resolve().methods)
    assert Options(("iun",), work=tmp_path).check_and_resolve().methods == ("iun",)


@pytest.mark.parametrize(("name", "cost"), [("l1r", 0.1 * (1 + 2 + 3)), ("l2r", 0.05 * (1 + 4 + 9))])
def test_weight_penalty_matches_a_hand_calculation(name, cost):
    weights = [torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0]])]
    assert float(make_method(name, strength=0.1).penalty(weights)) == pytest.approx(cost)
    assert make_method("an").penalty(weights) == 0


def test_gr_learned_loss_starts_equal_to_scheduled_gr_loss_and_its_curves_have_gradients():
    labels, logits = torch.tensor([[1, 0, 0], [0, 1, 0]], dtype=torch.int8), torch.tensor([[1.0, -1, 0], [0, 2, -2]])
    learned, moved = make_method("gr_learned"), make_method("gr")
    for method in (learned, moved):
        method.begin(labels, None, 4, torch.Generator())
    loss = learned.loss(logits, torch.arange(2))
    assert loss.item() == pytest.approx(moved.loss_function(logits, labels).item(), rel=1e-6)
    loss.backward()
    (group,) = learned.parameter_groups()
    assert [tuple(curve.shape) for curve in group["params"]] == [(3,)] * 4
    assert all(curve.grad.abs().sum() > 0 for curve in group["params"])


def test_two_stage_an_ls_freezes_the_backbone_first_and_then_restarts_the_optimizer():
    method = make_method("an_ls+linear_init")
    method.begin(torch.zeros(2, 2, dtype=torch.int8), None, 35, torch.Generator())
    assert [method.freezes_backbone(epoch) for epoch in (1, 25, 26)] == [True, True, False]
    assert [epoch for epoch in range(1, 36) if method.restarts_optimizer(epoch)] == [26]
    published = METHODS["an_ls+linear_init"].published
    assert {name: (one.linear_lr, one.linear_batch) for name, one in published.items()} == {
        "voc": (1e-4, 8), "coco": (1e-4, 8), "nus": (1e-4, 16), "cub": (1e-4, 8)
    }  # fmt: skip


def test_task_computes_only_the_requested_extra_metrics():
    truth = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]], bool)
    rows = np.arange(3)
    task = Task(
        truth, rows[:1], rows[1:1], rows[1:], np.array([[1, 0, 0]], np.int8), False, measures=("recall@1", "train_map")
    )
    probabilities = np.array([[0.9, 0.2, 0.3], [0.4, 0.8, 0.1], [0.6, 0.5, 0.5]])
    figures = task.compute_figures(Trained(lambda rows: probabilities[rows], 1, 0.5, 0.1))
    assert figures["recall@1"] == pytest.approx((1 / 2 + 0) / 2) and figures["train_map"] == 1.0
    assert "wasserstein" not in figures


def test_precision_and_recall_at_k_match_a_hand_calculation():
    scores = np.array([[0.9, 0.8, 0.1], [0.2, 0.2, np.nan], [0.3, 0.4, 0.5]])
    truth = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], bool)
    # First one: hits in 1 of 3 images; the equal ones of the second are taken in their order. Recall: (1/2 + 0) / 2.
    assert precision_and_recall_at(scores, truth, 1) == pytest.approx((1 / 3, 1 / 4))
    assert precision_and_recall_at(scores, truth, 2) == pytest.approx(((1 / 2 + 1 / 2 + 0) / 3, (1 / 2 + 1) / 2))
    assert precision_and_recall_at(scores, truth, 9) == pytest.approx(((2 / 3 + 1 / 3 + 0) / 3, 1.0))


def test_wasserstein_distance_matches_a_hand_calculation():
    assert wasserstein_distance(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == pytest.approx(0.5)
    assert wasserstein_distance(np.array([0.2, 0.4]), np.array([0.7, 0.9])) == pytest.approx(0.5)
    # A quarter of the first sample has to go from 0 to 1.
    assert wasserstein_distance(np.array([0, 0, 0, 1]), np.array([0, 1])) == pytest.approx(0.25)
    assert wasserstein_distance(np.array([0.3]), np.array([0.3, 0.3])) == 0
    assert np.isnan(wasserstein_distance(np.array([]), np.array([0.3])))
