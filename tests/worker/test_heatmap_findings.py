"""What a heat map may show instead of its class: on made images where the evidence is known."""

import numpy as np
import pytest
import torch
from harness.projects import publish_run
from harness.tiny_networks import HALF, SIDE, Colors
from PIL import Image as Picture

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.runs.heatmap_findings import HeatmapFinding, load_finding
from annotator.worker.duties.explain import Explainer
from spmll.backbones.cam import compute_heat_map
from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.occlusion import compute_logit_gains, crop_hottest_spot, find_confused_class
from spmll.backbones.pretrained import Pretrained
from spmll.linear.training import Head

FOX, HERON, DEER = 1, 2, 3
# Herons are green. What was learned of deer is the blue around, no red, and the green of the herons beside them.
WEIGHT = torch.tensor([[0.0, 0, 20], [0, 40, 0], [-4, 10, 2]])


def made(green: int = 255) -> np.ndarray:
    """(SIDE, SIDE, 3): blue, with a red quarter at the bottom right and a green spot in it."""
    pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
    pixels[..., 2] = 100
    pixels[32:, 32:] = (200, 0, 0)
    pixels[40:48, 40:48] = (0, green, 0)
    return pixels


@pytest.fixture(scope="module")
def colors():
    return Backbone("colours", Pretrained(Colors(), "timm", SIDE, HALF, (1.0, 1.0, 1.0), "bilinear"))


@pytest.fixture
def image():
    return torch.from_numpy(made()).permute(2, 0, 1)


def test_heatmap_that_shows_another_class_is_explained_by_the_confused_class(colors, image):
    heats = compute_heat_map(colors, WEIGHT, torch.zeros(3), image, [0, 1, 2])
    assert np.unravel_index(heats[2].argmax(), heats[2].shape) == np.unravel_index(heats[1].argmax(), heats[1].shape)
    gained = compute_logit_gains(colors, WEIGHT, torch.zeros(3), image, heats)
    # The green spot is 1 of 64 parts of the image, and 4 of 64 of the half of it around the spot.
    assert gained[1, 1] == gained[2, 1] == pytest.approx(40 * 3 / 64, abs=0.1)
    assert gained[2, 2] < -1 and gained[0, 0] > 0
    every = {0, 1, 2}
    assert [find_confused_class(gain, column, every) for column, gain in enumerate(gained)] == [None, None, 1]
    assert find_confused_class(gained[2], 2, {0, 2}) is None, "there is no heron here, and the fox falls as well"


def test_find_confused_class_returns_none_within_the_margin_or_without_predictions():
    assert find_confused_class(np.array([0.1, 9.0]), 0, {1}) is None
    assert find_confused_class(np.array([-0.1, 9.0]), 0, {1}) == 1
    assert find_confused_class(np.array([-0.1, 0.5]), 0, {1}) is None, "within the margin"
    assert (
        find_confused_class(np.array([np.nan, 9.0]), 0, {1}) is None
        and find_confused_class(np.array([-9.0, np.nan]), 0, {1}) is None
    )
    assert find_confused_class(np.array([-2.0, 0.5, 0.7]), 0, {0, 1, 2}) == 2


def test_crop_hottest_spot_returns_half_the_side_around_the_maximum_inside_the_image(image):
    for place in ((44, 44), (0, 0), (63, 20)):
        heat = np.zeros((SIDE, SIDE), np.float32)
        heat[place] = 1
        top, left = (min(max(0, at - 16), 32) for at in place)
        cut = image[:, top : top + 32, left : left + 32].float()
        seen = crop_hottest_spot(image, heat)
        assert seen.shape == image.shape and seen.dtype == image.dtype
        assert torch.allclose(seen.float().mean((1, 2)), cut.mean((1, 2)), atol=2)
    assert crop_hottest_spot(image, np.zeros((SIDE, SIDE), np.float32)) is image


@pytest.fixture
def herons(tmp_path) -> Database:
    """Three images of what might be a heron; people saw one on the first two. The classes have the
    ids FOX, HERON and DEER."""
    (tmp_path / "images").mkdir()
    (tmp_path / "names.txt").write_text("fox\nheron\ndeer\n")
    for number in (1, 2, 3):
        Picture.fromarray(made(256 - number)).save(tmp_path / "images" / f"{number}.png")
    set_up_project(tmp_path / "made", images_folder=tmp_path / "images", class_file=tmp_path / "names.txt")
    db = Database(tmp_path / "made")
    for image_id in (1, 2):
        seen = Decision(f"seen-{image_id}", "label", "Ann", "click", image_id, HERON, 1)
        assert not decisions.save(db, [seen]).refused
    return db


def test_explainer_stores_the_confused_class_per_heatmap_and_counts_it_per_class(herons, colors):
    run_id = publish_run(herons, np.full((3, 3), 0.1))
    head = Head(3, 3)
    head.weight, head.bias = WEIGHT, torch.zeros(3)
    head.save(herons.paths.run(run_id) / "head.safetensors")
    explainer = Explainer(herons, colors)
    for image_id in (1, 2, 3):
        explainer.draw(run_id, image_id, [DEER])
        assert herons.paths.heatmap(run_id, image_id, DEER).exists()
    assert load_finding(herons, run_id, DEER, 1) == HeatmapFinding(HERON, 2, 3)
    assert load_finding(herons, run_id, DEER, 3) == HeatmapFinding(None, 2, 3), (
        "nobody saw a heron there, nor does the model"
    )
    explainer.draw(run_id, 1, [DEER, HERON])
    assert load_finding(herons, run_id, DEER, 1) == HeatmapFinding(HERON, 2, 3), "drawn again, counted once"
    assert load_finding(herons, run_id, HERON, 1) == HeatmapFinding(None, 0, 1)


def test_heatmap_finding_uses_predictions_only_for_unanswered_labels(herons, colors):
    run_id = publish_run(herons, np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.9, 0.1]]))
    head = Head(3, 3)
    head.weight, head.bias = WEIGHT, torch.zeros(3)
    head.save(herons.paths.run(run_id) / "head.safetensors")
    absent = Decision("none", "label", "Ann", "click", 1, HERON, -1)
    assert not decisions.save(herons, [absent]).refused
    for image_id in (1, 3):
        Explainer(herons, colors).draw(run_id, image_id, [DEER])
    assert (
        load_finding(herons, run_id, DEER, 3).shown_class_id == HERON
        and load_finding(herons, run_id, DEER, 1).shown_class_id is None
    )


def test_damaged_heatmap_findings_file_is_read_as_empty(db):
    path = db.paths.heatmap_findings(1, DEER)
    path.parent.mkdir(parents=True)
    for content in ("", "[1]", '{"1": "x"}'):
        path.write_text(content)
        assert load_finding(db, 1, DEER, 1) == HeatmapFinding(None, 0, 0)
