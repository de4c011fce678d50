"""A heat map that another class on the image explains as much says so: on made images where the evidence is known."""

import numpy as np
import pytest
import torch
from PIL import Image as Picture
from test_cam import HALF, SIDE, Colours

from annotator.benchmark.harness.projects import publish_run
from annotator.exchange.setup import set_up
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.heatmap_findings import Finding, finding
from annotator.store.labels import decisions
from annotator.worker.duties.explain import Explainer
from models.backbones.cam import heat_map
from models.backbones.networks import Backbone
from models.backbones.occlusion import beside, covered, falls
from models.backbones.pretrained import Pretrained
from models.linear.training import Head

FOX, HERON, DEER = 1, 2, 3  # seen by red, by green, and by the green that stands beside it and a little blue
WEIGHT = torch.tensor([[8.0, 0, 0], [0, 8, 0], [0, 5, 1]])


@pytest.fixture(scope="module")
def colours():
    return Backbone("colours", Pretrained(Colours(), "timm", SIDE, HALF, (1.0, 1.0, 1.0), "bilinear"))


@pytest.fixture
def image():
    pixels = torch.zeros(3, SIDE, SIDE, dtype=torch.uint8)
    pixels[0, :16, :16] = 255  # a fox at the top left
    pixels[1, 48:, 48:] = 255  # a heron at the bottom right
    return pixels


def test_covering_the_hottest_spot_takes_the_evidence_that_lies_there_and_leaves_the_rest(colours, image):
    heats = heat_map(colours, WEIGHT, torch.zeros(3), image, [0, 1, 2])
    fox, heron, deer = falls(colours, WEIGHT, torch.zeros(3), image, heats)
    # Pixels of 255 that are covered have the mean of the image, a sixteenth of that; the fox is the hottest corner.
    pixels = int((covered(image, heats[0])[0] != image[0]).sum())
    assert 80 < pixels <= 256, "a spot within a seventh of the side around one place of the fox"
    gone = pixels / SIDE**2 * (1 - 15 / 255)
    assert fox[0] == pytest.approx(8 * gone, abs=0.05) and fox[1] < 0.1 and fox[2] < 0.1
    assert heron[1] > 0.1 and heron[0] < 0.1
    assert deer[2] > 0.1 and deer[1] > deer[2]


def test_a_class_is_named_where_it_loses_more_than_that_of_the_heat_map_and_is_on_the_image(colours, image):
    heats = heat_map(colours, WEIGHT, torch.zeros(3), image, [0, 1, 2])
    fallen = falls(colours, WEIGHT, torch.zeros(3), image, heats)
    assert [beside(fallen, [0, 1, 2], place) for place in range(3)] == [None, None, 1]
    assert beside(fallen[[0, 2]], [0, 2], 1) is None, "there is no heron here"
    half = fallen.copy()
    half[1, 1] = 2 * fallen[2, 1]
    assert beside(half, [0, 1, 2], 2) is None, "most of the heron is elsewhere"
    unknown = np.array([[np.nan, np.nan, 0.0], [np.nan, np.nan, 0.5]])
    assert beside(unknown, [0, 2], 1) is None, "a class without a model explains nothing"
    assert beside(-fallen, [0, 1, 2], 2) is None, "nothing was lost"


def test_nothing_is_covered_where_nothing_speaks_for_a_class(image):
    assert covered(image, np.zeros((SIDE, SIDE), np.float32)) is image


@pytest.fixture
def herons(tmp_path) -> Database:
    """Three images of what might be a heron at the bottom right; people saw one on the first two. The classes have the
    ids FOX, HERON and DEER."""
    (tmp_path / "images").mkdir()
    (tmp_path / "names.txt").write_text("fox\nheron\ndeer\n")
    for number in (1, 2, 3):
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        pixels[48:, 48:, 1] = 256 - number
        Picture.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    set_up(tmp_path / "made", images_folder=tmp_path / "images", class_file=tmp_path / "names.txt")
    db = Database(tmp_path / "made")
    for image_id in (1, 2):
        seen = Decision(f"seen-{image_id}", "label", "Ann", "click", image_id, HERON, 1)
        assert not decisions.decide(db, [seen]).refused
    return db


def test_the_worker_keeps_what_it_finds_beside_each_heat_map_and_counts_it_by_class(herons, colours):
    run_id = publish_run(herons, np.full((3, 3), 0.1))
    head = Head(3, 3)
    head.weight, head.bias = WEIGHT, torch.zeros(3)
    head.save(herons.paths.run(run_id) / "head.safetensors")
    explainer = Explainer(herons, colours)
    for image_id in (1, 2, 3):
        explainer.draw(run_id, image_id, [DEER])
        assert herons.paths.heatmap(run_id, image_id, DEER).exists()
    assert finding(herons, run_id, DEER, 1) == Finding(HERON, 2, 3)
    assert finding(herons, run_id, DEER, 3) == Finding(None, 2, 3), "nobody saw a heron there, nor does the model"
    explainer.draw(run_id, 1, [DEER, HERON])
    assert finding(herons, run_id, DEER, 1) == Finding(HERON, 2, 3), "drawn again, counted once"
    assert finding(herons, run_id, HERON, 1) == Finding(None, 0, 1)


def test_what_the_model_sees_on_an_image_counts_where_nobody_has_answered(herons, colours):
    run_id = publish_run(herons, np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.9, 0.1]]))
    head = Head(3, 3)
    head.weight, head.bias = WEIGHT, torch.zeros(3)
    head.save(herons.paths.run(run_id) / "head.safetensors")
    absent = Decision("none", "label", "Ann", "click", 1, HERON, -1)
    assert not decisions.decide(herons, [absent]).refused
    for image_id in (1, 3):
        Explainer(herons, colours).draw(run_id, image_id, [DEER])
    assert finding(herons, run_id, DEER, 3).beside == HERON and finding(herons, run_id, DEER, 1).beside is None


def test_a_damaged_file_of_findings_says_nothing(db):
    path = db.paths.heatmap_findings(1, DEER)
    path.parent.mkdir(parents=True)
    for content in ("", "[1]", '{"1": "x"}'):
        path.write_text(content)
        assert finding(db, 1, DEER, 1) == Finding(None, 0, 0)
