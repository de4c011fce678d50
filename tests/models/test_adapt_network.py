"""Adapting a network: which stages, the same features when put together, learning, going on after a kill, the file."""

import numpy as np
import pytest
import timm
import torch
from harness.short_forms import mark_slow_after
from PIL import Image

from spmll.backbones.frozen_backbone import Backbone, load_backbone
from spmll.backbones.local_dir import save_network
from spmll.backbones.pretrained import Pretrained
from spmll.finetune.adapt import (
    WEAK_VIEWS,
    AdaptationLabels,
    adapt_last_stages,
    compute_stage_features,
    make_adaptation_recipe,
)
from spmll.finetune.answer_method import AnswerMethod, choose_single_positive_method
from spmll.finetune.last_stages import merge_last_stages, split_network
from spmll.finetune.parallel_process import ParallelProcess
from spmll.finetune.views import MapExamples
from spmll.methods import make_method
from spmll.statistics.paired_bootstrap import compare_scorings

SIZE = 64


def tiny(architecture: str) -> Pretrained:
    torch.manual_seed(0)
    network = timm.create_model(architecture, pretrained=False, **({"img_size": SIZE} if "vit" in architecture else {}))
    network.pretrained_cfg = dict(network.pretrained_cfg) | {"input_size": (3, SIZE, SIZE)}
    return Pretrained(network.eval(), "timm", SIZE, (0.5,) * 3, (0.5,) * 3, "bilinear")


def pixels(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(
        0, 256, (count, 3, SIZE, SIZE), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8
    )


def colored(count: int) -> tuple[torch.Tensor, np.ndarray]:
    """Noise in which class c is a brighter channel c; labels 1 and -1."""
    shows = np.random.default_rng(0).random((count, 3)) < 0.4
    images = pixels(count).float() * 0.6
    images += 60 * torch.from_numpy(shows)[:, :, None, None]
    return images.to(torch.uint8), np.where(shows, 1, -1).astype(np.int8)


@pytest.mark.parametrize(
    ("architecture", "first"),
    mark_slow_after(
        1,
        [
            ("test_efficientnet", "blocks.2"),
            ("test_vit", "blocks.4"),
            ("test_resnet", "layer4"),
            ("test_convnext", "stages.3"),
            ("test_byobnet", "stages.3"),
        ],
    ),
)
def test_splitting_a_backbone_into_frozen_and_trained_stages_keeps_its_embeddings(architecture, first):
    source = tiny(architecture)
    backbone = Backbone("tiny", source)
    inputs, last_stages, what = split_network(backbone, source)
    assert what.startswith(first)
    examples = MapExamples(list(inputs(pixels(5))[:, None].numpy()))
    features = compute_stage_features(last_stages, examples, lambda: False, as_backbone=True)
    assert np.allclose(features, backbone.features(pixels(5)).numpy(), atol=0.02)
    trained = [name for name, p in last_stages.named_parameters() if p.requires_grad]
    assert trained and not any("pos_embed" in name or "cls_token" in name or "stem" in name for name in trained)


def cached(source: Pretrained, images: torch.Tensor):
    inputs, last_stages, _ = split_network(Backbone("tiny", source), source)
    views = torch.stack([inputs(images), inputs(images.flip(3))], 1).numpy()
    return MapExamples(list(views), weak=WEAK_VIEWS), last_stages


def training(source: Pretrained, checkpoint=None, epochs: int = 3):
    images, labels = colored(48)
    labels[::3, 1:] = 0  # of every third image one class was looked at
    unbiased = labels != 0
    unbiased[::2] = False
    labels[::2][labels[::2] < 0] = 0  # every other image was only clicked on
    examples, last_stages = cached(source, images)
    whole = np.ones(labels.shape, bool)
    given, recipe = AdaptationLabels(labels, whole, unbiased), make_adaptation_recipe(epochs)
    return last_stages, adapt_last_stages(
        last_stages, examples, given, make_method("auto"), recipe, seed=1, checkpoint=checkpoint
    )


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["test_efficientnet", "test_vit"])
def test_training_lowers_the_loss_and_resumes_identically_after_a_kill(architecture, tmp_path):
    source = tiny(architecture)
    Backbone("tiny", source)
    _, whole = training(source)
    history = list(whole)
    assert history[-1].loss < history[0].loss
    _, killed = training(source, tmp_path / "checkpoint.safetensors")
    next(killed)
    del killed
    _, resumed = training(source, tmp_path / "checkpoint.safetensors")
    assert [epoch.loss for epoch in list(resumed)] == [epoch.loss for epoch in history[1:]]
    there, here = whole.copy_weights(), resumed.copy_weights()
    assert all(torch.equal(there[name], here[name]) for name in there)
    with pytest.raises(ValueError, match="of another training"):
        training(source, tmp_path / "checkpoint.safetensors", epochs=4)


def test_checkpoint_is_safetensors_and_a_damaged_one_is_refused(tmp_path):
    source = tiny("test_efficientnet")
    Backbone("tiny", source)
    path = tmp_path / "checkpoint.safetensors"
    next(training(source, path)[1])
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        assert "identity" in file.metadata()["state"]
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="damaged"):
        training(source, path)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["test_efficientnet", "test_vit", "test_convnext"])
def test_adapted_backbone_loads_in_timm_and_by_its_name(architecture, tmp_path):
    source = tiny(architecture)
    Backbone("tiny", source)
    last_stages, trained = training(source, epochs=1)
    list(trained)
    weights = trained.copy_weights()
    folder = tmp_path / "adapted"
    save_network(
        folder, source, merge_last_stages(source, last_stages), weights["classifier.weight"],
        weights["classifier.bias"], ["red", "green", "blue"],
    )  # fmt: skip
    again = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    assert again.num_classes == 3
    images, _ = colored(2)
    examples, _ = cached(source, images)
    backbone = load_backbone(f"local-dir:{folder}")
    assert (backbone.input_size, backbone.mean) == (SIZE, (0.5,) * 3)
    assert np.allclose(
        backbone.features(images).numpy(),
        compute_stage_features(last_stages, examples, lambda: False, as_backbone=True),
        atol=0.02,
    )
    expected = compute_stage_features(last_stages, examples, lambda: False)
    with torch.no_grad():
        logits = again(backbone.normalize(images))
    assert np.allclose(
        logits, expected @ weights["classifier.weight"].numpy().T + weights["classifier.bias"].numpy(), atol=0.05
    )
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_backbone(f"local-dir:{folder}")
    with pytest.raises(ValueError, match=r"no config\.json"):
        load_backbone(f"local-dir:{tmp_path}")


def test_splitting_a_backbone_that_is_not_from_timm_is_refused():
    source = Pretrained(torch.nn.Flatten(), "", 8, (0.5,) * 3, (0.5,) * 3, "bilinear")
    with pytest.raises(ValueError, match="only networks of timm"):
        split_network(Backbone("plain", source), source)


def test_backbone_adaptation_ignores_unanswered_labels_of_images_with_unbiased_answers():
    labels = torch.tensor([[1, -1, 0], [1, 0, 0], [1, -1, 0]])
    unbiased = torch.tensor([[False, True, False], [False, False, False], [False, True, False]])
    method = AnswerMethod(choose_single_positive_method(make_method("auto")), unbiased)
    method.begin(labels, torch.tensor([[True] * 3, [True, True, False], [False] * 3]), 3, torch.Generator())
    method.begin_epoch(1)
    logits = torch.zeros(3, 3, requires_grad=True)
    method.loss(logits, torch.arange(3)).backward()
    assert (logits.grad != 0).tolist() == [[True, True, False], [True, True, False], [False] * 3]
    assert logits.grad[0, 0] < 0 < logits.grad[0, 1]


def test_backbone_adaptation_replaces_methods_with_state_per_image_by_the_gr_loss():
    assert choose_single_positive_method(make_method("em")).name == "em"
    assert {choose_single_positive_method(make_method(name)).name for name in ("auto", "role", "lagc", "oracle")} == {
        "gr"
    }


def test_adapted_backbone_counts_as_better_only_when_its_ap_gain_exceeds_chance():
    random = np.random.default_rng(0)
    labels = np.where(random.random((200, 4)) < 0.3, 1, -1)
    labels[random.random(labels.shape) < 0.5] = 0
    noise = random.normal(size=(3, 200, 4))
    poor, same, good = (
        1 / (1 + np.exp(-(strength * labels + n))) for strength, n in zip((0.5, 0.5, 2), noise, strict=True)
    )
    better = compare_scorings(poor, good, labels)
    assert better.is_better and 0 < better.ap.low < better.ap.value < better.ap.high
    assert not compare_scorings(poor, same, labels).is_better
    assert not compare_scorings(good, poor, labels).is_better
    from sklearn.metrics import average_precision_score

    known = labels != 0
    expected = np.mean([average_precision_score(labels[k, c] > 0, good[k, c]) for c, k in enumerate(known.T)])
    assert better.ap.second == pytest.approx(expected)
    with pytest.raises(ValueError, match="No class"):
        compare_scorings(poor, good, np.abs(labels))


def test_backbone_preprocessing_resizes_images_to_a_square():
    """The cached inputs are of the picture as the worker prepares it."""
    source = tiny("test_resnet")
    backbone = Backbone("tiny", source)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 90, 3), np.uint8))
    assert backbone.preprocess(picture).shape == (3, SIZE, SIZE)


def test_parallel_batches_split_their_rows_by_owning_process_without_repeats():
    owner = torch.cat([torch.zeros(50), torch.ones(30), torch.full((21,), 2.0)]).long()
    together = [ParallelProcess(owner, rank, 3) for rank in range(3)]
    order = torch.randperm(101, generator=torch.Generator().manual_seed(0))
    parts = together[0].split_into_batches(order, 32)
    assert [len(part) for part in parts[:3]] == [32, 32, 32]
    assert len(torch.unique(torch.cat(parts))) == sum(map(len, parts)) >= 96
    for part in parts:
        assert [sorted(t.select_own_rows(part).tolist()) for t in together] == [
            sorted(row for row in part.tolist() if owner[row] == rank) for rank in range(3)
        ]
        assert sum(t.compute_loss_weight(part) for t in together) == pytest.approx(3)
        assert len(part) < 32 or abs(len(together[0].select_own_rows(part)) - 16) <= 1
    assert torch.equal(torch.cat([t.own_images for t in together]).sort().values, torch.arange(101))
