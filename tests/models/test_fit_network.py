"""Whole networks: the same methods as on a linear head, through batches of views, stages, and a kill in between."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from harness.short_forms import mark_slow_after
from PIL import Image
from torch import nn

from annotator.benchmark.methods.epochs import Best, follow_training
from annotator.benchmark.methods.task import Task
from annotator.store.pictures.decoding import open_rgb
from spmll.backbones.pretrained import Pretrained
from spmll.finetune.best_epoch import BestEpoch
from spmll.finetune.checkpoints import get_method_state, restore_method_state
from spmll.finetune.fit_network import fit_linear_start, fit_network, predict
from spmll.finetune.optimizers import compute_average_decay, create_optimizer, update_average
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import ImageExamples, MapExamples
from spmll.finetune.whole_network import MapNetwork, WholeNetwork, build_whole_network
from spmll.linear.training import TrainingSettings
from spmll.methods import METHODS, make_method
from spmll.methods.training_recipes import TrainingRecipe
from spmll.trainers.base import TrainingLabels
from spmll.trainers.network import WholeNetworkTrainer

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]

IMAGES, CLASSES, CHANNELS = 96, 4, 16
LEARNING = TrainingRecipe(lr=5e-3, batch=16, epochs=8, linear_lr=1e-2, linear_batch=16)
ONE_CYCLE = TrainingRecipe(lr=3e-3, batch=16, epochs=8, optimiser="adamw_onecycle", weight_decay=0.01)
LINEAR = TrainingRecipe(lr=2e-2, batch=16, epochs=8)


class Small(nn.Module):
    """A convolution, the largest answer of each channel, and a linear classifier."""

    def __init__(self, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Sequential(nn.Conv2d(CHANNELS, 32, 1), nn.ReLU())
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(32, CLASSES)

    def features(self, maps):
        return self.body(maps).amax((2, 3))

    def forward(self, maps):
        return self.classifier(self.dropout(self.features(maps)))


class Problem:
    """Maps on which each class leaves its mark at some place; of each image's classes one is marked."""

    def __init__(self):
        random = np.random.default_rng(5)
        self.truth = random.random((IMAGES, CLASSES)) < 0.4
        self.truth[~self.truth.any(1), 0] = True
        marks = random.normal(size=(CLASSES, CHANNELS))
        maps = np.zeros((IMAGES, CHANNELS, 3, 3))
        self.labels = np.zeros((IMAGES, CLASSES), np.int8)
        for image, classes in enumerate(self.truth):
            for one in np.flatnonzero(classes):
                maps[image, :, random.integers(3), random.integers(3)] += marks[one]
            self.labels[image, random.choice(np.flatnonzero(classes))] = 1
        self.views = np.stack([maps + 0.1 * random.normal(size=maps.shape) for _ in range(4)], 1).astype(np.float16)
        self.examples = MapExamples(self.views, weak=2)

    def found(self, probabilities: np.ndarray) -> float:
        """How often a hidden positive is ranked above an absent cell: 0.5 is chance."""
        hidden, absent = self.truth & (self.labels == 0), ~self.truth
        return float((probabilities[hidden][:, None] > probabilities[absent]).mean())


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem()


def begin(problem, name, **options):
    method = make_method(name, **({"width": 16} if name == "lagc" else {}))
    of_maps = method.reads == "maps"
    network = method.build_network(CHANNELS, CLASSES, torch.Generator().manual_seed(3)) if of_maps else Small()
    settings = options.pop("settings", {"lagc": ONE_CYCLE, "boostlu": LINEAR}.get(name, LEARNING))
    return fit_network(network, options.pop("examples", problem.examples), problem.labels, method, settings, **options)


@pytest.mark.parametrize(
    "name", mark_slow_after(3, ["an", "gr", "role", "role+linear_init", "lagc", "boostlu", "smile"])
)
def test_every_method_ranks_hidden_positives_above_chance(problem, name):
    training = begin(problem, name)
    losses = [epoch.loss for epoch in training]
    assert len(losses) == 8
    probabilities = training.predict()
    assert probabilities.shape == (IMAGES, CLASSES)
    assert probabilities.dtype == np.float32
    assert problem.found(probabilities) > 0.75


def same(ours, theirs) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ours.values(), theirs.values(), strict=True))


@pytest.mark.parametrize("name", mark_slow_after(8, METHODS))
def test_training_resumed_after_a_kill_equals_an_uninterrupted_one(problem, tmp_path, name):
    short = MapExamples(problem.views[:32], weak=2)
    some = type("Some", (), {"labels": problem.labels[:32], "examples": short})
    settings = TrainingRecipe(
        lr=3e-3, batch=10, epochs=4, optimiser="adamw_onecycle" if name == "lagc" else "adam", linear_lr=0.01
    )
    whole = begin(some, name, settings=settings)
    assert [epoch.number for epoch in whole] == [1, 2, 3, 4]
    for epochs in (2, 1):  # twice: in the middle, and just before the end
        killed = begin(some, name, settings=settings, resume=ResumePoint(tmp_path / "training.state"))
        for _ in range(epochs):
            next(killed)
        del killed
    resumed = begin(some, name, settings=settings, resume=ResumePoint(tmp_path / "training.state"))
    assert [epoch.number for epoch in resumed] == [4]
    assert [epoch.loss for epoch in resumed.history] == [epoch.loss for epoch in whole.history]
    for which in whole.networks():
        assert same(resumed.copy_weights(which), whole.copy_weights(which))


def test_resumed_finished_training_runs_no_epoch_and_restores_its_weights(problem, tmp_path):
    settings = TrainingRecipe(lr=1e-3, batch=32, epochs=1)
    first = begin(problem, "an", settings=settings, resume=ResumePoint(tmp_path / "a"))
    assert len(list(first)) == 1
    again = begin(problem, "an", settings=settings, resume=ResumePoint(tmp_path / "a"))
    assert list(again) == []
    assert same(again.copy_weights(), first.copy_weights())


def test_checkpoint_of_another_training_is_refused_with_the_difference(problem, tmp_path):
    next(begin(problem, "an", resume=ResumePoint(tmp_path / "a")))
    with pytest.raises(ValueError, match=r"another training: method was 'an' and is 'gr'.*Delete it"):
        begin(problem, "gr", resume=ResumePoint(tmp_path / "a"))
    with pytest.raises(ValueError, match="seed was 0 and is 1"):
        begin(problem, "an", resume=ResumePoint(tmp_path / "a"), seed=1)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_damaged_checkpoint_is_refused_without_executing_its_content(problem, tmp_path):
    import pickle

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    for content in (b"", b"not a checkpoint", pickle.dumps(Trap())):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(ValueError, match="not a checkpoint of ours, or it is damaged"):
            begin(problem, "an", resume=ResumePoint(tmp_path / "a"))
    assert not (tmp_path / "sprung").exists()


def test_saving_a_method_with_an_unsupported_attribute_names_the_attribute():
    method = make_method("an")
    method.begin(torch.zeros(2, 2, dtype=torch.int8), None, 1, torch.Generator())
    method.friend = make_method("gr")
    with pytest.raises(TypeError, match=r"AN\.friend is a GR"):
        get_method_state(method)


def test_restoring_method_state_updates_its_tensors_in_place_for_the_optimizer():
    method = make_method("role")
    method.begin(torch.zeros(3, 2, dtype=torch.int8), None, 1, torch.Generator())
    phi, state = method.phi, get_method_state(method)
    with torch.no_grad():
        phi.zero_()
    restore_method_state(method, state)
    assert method.phi is phi
    assert phi.abs().sum() > 0


def test_training_is_deterministic_and_leaves_the_global_generator_unchanged(problem):
    def trained(seed):
        training = begin(problem, "gr", settings=TrainingRecipe(lr=1e-2, batch=32, epochs=2), seed=seed)
        torch.manual_seed(11)
        list(training)
        assert torch.rand(()) == torch.rand((), generator=torch.Generator().manual_seed(11))
        return training.copy_weights()

    assert same(trained(1), trained(1))
    assert not same(trained(1), trained(2))


def test_stop_between_batches_ends_training_at_the_last_finished_epoch(problem, tmp_path):
    asked = []

    def after_ten_batches():
        asked.append(1)
        return len(asked) > 10

    training = begin(problem, "an", resume=ResumePoint(tmp_path / "a"), should_stop=after_ten_batches)
    assert len(list(training)) == 1  # six batches an epoch
    assert [epoch.number for epoch in begin(problem, "an", resume=ResumePoint(tmp_path / "a"))] == list(range(2, 9))


def test_classifier_and_learned_tensors_have_separate_learning_rates():
    network, phi = Small(), torch.zeros(2, requires_grad=True)
    settings = TrainingRecipe(lr=1e-3, batch=1, epochs=1, head_lr_scale=10, optimiser="sgd", weight_decay=0.1)
    optimiser, schedule = create_optimizer(network, [{"params": [phi], "lr_scale": 5.0}], settings, 10, frozen=False)
    assert schedule is None
    found = [(group["lr"], group["weight_decay"], len(group["params"])) for group in optimiser.param_groups]
    assert found == [(1e-3, 0.1, 2), (1e-2, 0.1, 2), (5e-3, 0.0, 1)]
    with pytest.raises(ValueError, match=r"no optimiser 'adams'\. Did you mean 'adam'"):
        create_optimizer(network, [], TrainingRecipe(lr=1, batch=1, epochs=1, optimiser="adams"), 10, frozen=False)


def test_weight_average_moves_by_its_decay_which_is_lower_during_warm_up():
    network, average = Small(0), Small(1)
    before = average.classifier.weight.clone()
    update_average(average, network, 0.9997)
    torch.testing.assert_close(average.classifier.weight, before + 3e-4 * (network.classifier.weight - before))
    assert compute_average_decay(0.9997, 1) == pytest.approx(2 / 11)
    assert compute_average_decay(0.9997, 10**6) == 0.9997


@pytest.mark.parametrize(("warms_up", "left"), [(False, 0.9**3), (True, (2 / 11) * (3 / 12) * (4 / 13))])
def test_training_averages_its_weights_with_or_without_a_warm_up(problem, warms_up, left):
    """With a learning rate of nearly 0 the weights stand still, so that the average shows its pace alone."""
    method = make_method("lagc", width=16, average_decay=0.9, average_warm_up=warms_up)
    network = method.build_network(CHANNELS, CLASSES, torch.Generator())
    settings = TrainingRecipe(lr=1e-30, batch=IMAGES // 3, epochs=1)
    training = fit_network(network, problem.examples, problem.labels, method, settings)
    with torch.no_grad():
        training.average.bias.copy_(network.bias + 1)
    next(training)
    torch.testing.assert_close(training.average.bias - network.bias, torch.full((CLASSES,), left))


def test_incomplete_last_batch_is_dropped_when_the_recipe_says_so(problem):
    def images_in(settings):
        training = begin(problem, "an", settings=settings)
        seen, loss = [], training.method.loss
        training.method.loss = lambda logits, rows: (seen.append(len(rows)), loss(logits, rows))[1]
        next(training)
        return seen

    uneven = TrainingRecipe(lr=1e-3, batch=40, epochs=1)
    assert images_in(uneven) == [40, 40, 16]
    assert images_in(replace(uneven, drop_last=True)) == [40, 40]
    assert images_in(TrainingRecipe(lr=1e-3, batch=500, epochs=1, drop_last=True)) == [IMAGES]  # a single one stays


def test_published_recipes_of_cole_et_al_and_lagc_drop_the_incomplete_last_batch():
    leaving_out = {name for name, method in METHODS.items() if any(one.drop_last for one in method.published.values())}
    theirs = {name for name, method in METHODS.items() if method.paper.startswith("Cole et al.") and method.published}
    assert {"an", "role+linear_init", "oracle"} <= theirs
    assert leaving_out == theirs | {"lagc"}


def test_training_of_the_whole_network_starts_from_the_best_epoch_of_the_frozen_stage(problem):
    """Of six frozen epochs the third is called the best, and the seventh trains the whole network."""
    kept, begun = [], []
    training = begin(problem, "role+linear_init", resume=ResumePoint(best=lambda: kept[2]))
    begin_epoch = training.method.begin_epoch

    def look(epoch):
        begin_epoch(epoch)
        begun.append(BestEpoch(training.copy_weights(), training.copy_learned_tensors()))

    training.method.begin_epoch = look
    for _ in range(7):
        next(training)
        kept.append(BestEpoch(training.copy_weights(), training.copy_learned_tensors()))
    assert not torch.equal(kept[2].learned[0], kept[5].learned[0])
    assert same(begun[6].weights, kept[2].weights)
    torch.testing.assert_close(begun[6].learned[0], kept[2].learned[0], rtol=0, atol=1e-4)  # through sigmoid and back


@pytest.mark.parametrize("name", ["role+linear_init", "an_ls+linear_init"])
def test_best_epoch_of_two_stage_training_is_never_one_with_a_frozen_backbone(problem, tmp_path, name):
    class Falling(Task):
        def val_map(self, probabilities):
            return 1 / (1 + len(trainer.history))

    rows = np.arange(IMAGES)
    task = Falling(problem.truth, rows, rows[:5], rows[:0], problem.labels, False)
    best = Best(tmp_path / "best")
    trainer = WholeNetworkTrainer(
        make_method(name),
        Small(),
        lambda rows: MapExamples(problem.views[rows], weak=2),
        TrainingLabels(rows, problem.labels),
        LEARNING,
        resume=ResumePoint(best=lambda: best.best_epoch),
    )
    trained = follow_training(name, trainer, best, task)
    assert (trained.epoch, trained.val_map) == (7, 1 / 8)  # the first of the second stage; epoch 1 had 1/2
    again = Best(tmp_path / "best")
    assert (again.epoch, again.best_score, len(again.scores)) == (7, 1 / 8, 8)
    assert len(again.best_epoch.learned) == len(best.best_epoch.learned) == (name == "role+linear_init")
    assert all(map(torch.equal, again.best_epoch.learned, best.best_epoch.learned))


def test_linear_start_trains_only_the_classifier_and_passes_on_learned_estimates(problem):
    network = Small()
    body = network.body[0].weight.clone()
    learned = fit_linear_start(
        network, problem.examples, problem.labels, make_method("role"), TrainingSettings(epochs=8)
    )
    assert torch.equal(network.body[0].weight, body)
    assert problem.found(predict(network, problem.examples)) > 0.6
    assert [one.shape for one in learned] == [(IMAGES, CLASSES)]
    resume = ResumePoint(learned=learned)
    training = fit_network(network, problem.examples, problem.labels, make_method("role"), LEARNING, resume=resume)
    assert torch.equal(training.method.phi, learned[0])
    with pytest.raises(ValueError, match="was handed"):
        fit_network(network, problem.examples, problem.labels, make_method("an"), LEARNING, resume=resume)


def test_linear_start_uses_its_best_epoch(problem):
    heads = []

    def score(head):
        heads.append((head.weight, head.bias))
        return -abs(len(heads) - 2)  # the second is the best

    network = Small()
    fit_linear_start(
        network, problem.examples, problem.labels, make_method("an"), TrainingSettings(epochs=4), score=score
    )
    assert torch.equal(network.classifier.weight, heads[1][0])


def test_class_without_present_labels_keeps_its_initial_classifier_in_a_linear_start(problem):
    network = Small()
    before, labels = network.classifier.weight.clone(), problem.labels.copy()
    labels[:, 2] = 0
    fit_linear_start(network, problem.examples, labels, make_method("an"), TrainingSettings(epochs=2))
    assert torch.equal(network.classifier.weight[2], before[2])
    assert torch.isfinite(network.classifier.bias).all()


def test_non_finite_loss_ends_training_with_an_error(problem):
    network = Small()
    with torch.no_grad():
        network.classifier.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="loss of an in epoch 1 is nan"):
        next(fit_network(network, problem.examples, problem.labels, make_method("an"), LEARNING))


def test_training_refuses_mismatched_labels_no_images_no_epochs_and_unknown_precision(problem):
    with pytest.raises(ValueError, match=r"\(95, 4\)"):
        fit_network(Small(), problem.examples, problem.labels[:-1], make_method("an"), LEARNING)
    with pytest.raises(ValueError, match="no image"):
        fit_network(Small(), MapExamples([]), problem.labels[:0], make_method("an"), LEARNING)
    with pytest.raises(ValueError, match="at least one epoch"):
        begin(problem, "an", settings=TrainingRecipe(lr=1e-3, batch=8, epochs=0))
    with pytest.raises(ValueError, match="no precision 'half'"):
        begin(problem, "an", settings=replace(LEARNING, precision="half"))


@pytest.fixture
def pictures(tmp_path):
    paths = []
    for number in range(10):
        colour = [(250, 30, 30), (30, 30, 250)][number % 2]
        picture = np.random.default_rng(number).integers(100, 140, (40, 60, 3), dtype=np.uint8)
        picture[:, :20] = colour
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
        paths.append(tmp_path / f"{number}.png")
    return paths


def test_images_are_resized_normalized_and_flipped_reproducibly_for_a_seed(pictures):
    examples = ImageExamples(pictures, open_rgb, 16, workers=3)
    rows = torch.tensor([3, 1, 2])
    plain = examples.batch(rows, 1, False, torch.Generator())
    assert plain.shape == (3, 3, 16, 16)
    assert plain[0, 0, 8, 0] == pytest.approx((30 / 255 - 0.485) / 0.229, abs=0.02)
    once = examples.batch(torch.arange(10), 2, True, torch.Generator().manual_seed(4))
    again = ImageExamples(pictures, open_rgb, 16, workers=1, keep_bytes=0).batch(
        torch.arange(10), 2, True, torch.Generator().manual_seed(4)
    )
    assert once.shape == (20, 3, 16, 16)
    assert torch.equal(once, again)
    everything = examples.batch(torch.arange(10), 1, False, torch.Generator())
    mirrored = [torch.equal(weak, one.flip(2)) for weak, one in zip(once[:10], everything, strict=True)]
    assert 0 < sum(mirrored) < 10
    assert all(torch.equal(weak, one) for weak, one, m in zip(once, everything, mirrored, strict=False) if not m)


def test_image_batches_do_not_depend_on_the_number_of_decoding_threads(pictures):
    parts = list(torch.arange(10).split(3))

    def all_of(workers):
        examples = ImageExamples(pictures, open_rgb, 8, workers=workers, mean=None, std=None)
        generator = torch.Generator().manual_seed(0)
        return [*examples.batches(parts, 2, True, generator), torch.rand(3, generator=generator)]

    for few, many in zip(all_of(1), all_of(8), strict=True):
        assert torch.equal(few, many)


def test_training_error_names_every_unreadable_image(pictures, tmp_path):
    (tmp_path / "4.png").write_bytes(b"GIF89a not really")
    (tmp_path / "7.png").unlink()
    examples = ImageExamples(pictures, open_rgb, 8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    labels = np.tile(np.array([[1, 0], [0, 1]], np.int8), (5, 1))
    training = fit_network(network, examples, labels, make_method("an"), TrainingRecipe(lr=1e-3, batch=10, epochs=1))
    with pytest.raises(ValueError, match=r"2 of the 10 images") as caught:
        next(training)
    assert "4.png: " in str(caught.value)
    assert "7.png: no such file" in str(caught.value)


def residual(seed=0) -> Pretrained:
    import torchvision

    torch.manual_seed(seed)
    network = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=7)
    return Pretrained(network.eval(), "torchvision", 32, (0.5,) * 3, (0.5,) * 3, "bilinear")


def test_whole_network_for_lagc_is_a_map_network_and_otherwise_a_linear_classifier():
    linear = build_whole_network(residual(), 3, make_method("an"))
    assert isinstance(linear, WholeNetwork)
    assert linear(torch.zeros(2, 3, 64, 64)).shape == (2, 3)
    assert all(p.requires_grad for p in linear.parameters())
    mapped = build_whole_network(residual(), 3, make_method("lagc", width=0)).train()
    assert isinstance(mapped, MapNetwork)
    assert mapped(torch.zeros(2, 3, 64, 64)).shape == (2, 3)
    still = {name for name, p in mapped.named_parameters() if not p.requires_grad}
    assert "body.conv1.weight" in still
    assert "body.layer1.0.conv1.weight" in still
    assert "body.layer2.0.bn1.weight" in still
    assert "body.layer2.0.conv1.weight" not in still
    assert not mapped.body.layer3[0].bn1.training
    assert same(
        build_whole_network(residual(), 3, make_method("an"), seed=5).state_dict(),
        build_whole_network(residual(), 3, make_method("an"), seed=5).state_dict(),
    )


def test_whole_network_training_on_image_files_reduces_the_loss(pictures):
    examples = ImageExamples(pictures, open_rgb, 32)
    labels = np.tile(np.array([[1, 0], [0, 1]], np.int8), (5, 1))
    network = build_whole_network(residual(), 2, make_method("an"))
    training = fit_network(network, examples, labels, make_method("an"), TrainingRecipe(lr=3e-3, batch=5, epochs=6))
    losses = [epoch.loss for epoch in training]
    assert losses[-1] < losses[0]
    assert training.predict(examples).shape == (10, 2)


@pytest.mark.parametrize("name", ["gr", "lagc"])
def test_bf16_training_has_finite_loss_and_predicts_in_float32(problem, name):
    training = begin(problem, name, settings=TrainingRecipe(lr=3e-3, batch=24, epochs=2, precision="bf16"))
    assert training.amp == torch.bfloat16
    assert all(np.isfinite(epoch.loss) for epoch in training)
    assert training.predict().dtype == np.float32
    assert all(one.dtype != torch.bfloat16 for one in training.copy_weights().values())
