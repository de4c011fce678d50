"""LAGC: its decoder, its views, its queue and stages, and a project that is trained with it."""

from random import Random

import numpy as np
import pytest
import torch
from PIL import Image

from annotator.errors import AnnotatorError, DiskFull
from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.runs import runs
from annotator.worker.features.map_cache import (
    STRONG_VIEW_COUNT,
    WEAK_VIEW_COUNT,
    MapFiles,
    check_disk_space,
    make_views,
)
from annotator.worker.features.worker_context import Stopped
from annotator.worker.process import Worker
from spmll.backbones.feature_maps import FeatureMaps
from spmll.backbones.frozen_backbone import load_backbone
from spmll.finetune import augment
from spmll.finetune.views import MapExamples
from spmll.linear.surrogate_head import fit_surrogate_head
from spmll.linear.training import Head
from spmll.methods import METHODS, make_method
from spmll.methods.published.label_decoder import LabelDecoder, sine_position_encoding
from spmll.methods.published.lagc_losses import (
    EmbeddingQueue,
    consistency_loss,
    contrastive_loss,
    make_one_cycle_schedule,
)

pytestmark = pytest.mark.usefixtures("one_thread")


def decoder(seed: int = 0, **sizes) -> LabelDecoder:
    return LabelDecoder(12, 5, **({"width": 8} | sizes), generator=torch.Generator().manual_seed(seed))


# -- the decoder


def test_label_decoder_returns_logits_and_on_request_unit_length_embeddings_per_class():
    network, maps = decoder(projection=6), torch.randn(3, 12, 4, 7)
    assert network(maps).shape == (3, 5)
    network.projecting = True
    logits, embeddings = network(maps)
    assert logits.shape == (3, 5)
    assert embeddings.shape == (3, 5, 6)
    torch.testing.assert_close(embeddings.norm(dim=-1), torch.ones(3, 5))
    assert network.eval()(maps).shape == (3, 5)


def test_decoder_weights_depend_on_the_seed_and_leave_the_global_generator_unchanged():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one, other, third = decoder(1), decoder(1), decoder(2)
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.queries, third.queries)


def test_label_decoder_without_dimension_reduction_has_the_published_layer_sizes():
    network = LabelDecoder(32, 3)
    assert isinstance(network.reduce, torch.nn.Identity)
    assert network.queries.shape == (3, 32)
    assert network.encoder.feed[0].out_features == 128
    assert len(network.decoder) == 2
    assert network.decoder[0].attention.num_heads == 4


def test_label_decoder_refuses_a_width_not_divisible_by_its_heads():
    with pytest.raises(ValueError, match="width of 10 can be divided neither"):
        decoder(width=10)
    with pytest.raises(ValueError, match="width of 12 must be divisible by the 8 heads"):
        decoder(width=12, heads=8)


def test_decoder_logits_depend_on_the_position_and_the_class():
    network, maps = decoder().eval(), torch.zeros(2, 12, 3, 3)
    maps[0, :, 0, 0] = maps[1, :, 2, 1] = torch.linspace(-3, 3, 12)
    logits = network(maps)
    assert not torch.allclose(logits[0], logits[1], atol=1e-4)
    assert logits[0].std() > 1e-3


def test_position_encoding_equals_the_detr_formula():
    code = sine_position_encoding(8, 2, 3)
    assert code.shape == (6, 8)
    row, column = 2 / (2 + 1e-6) * 2 * np.pi, 1 / (3 + 1e-6) * 2 * np.pi
    expected = [f(angle / pace) for angle in (row, column) for pace in (1, 100) for f in (np.sin, np.cos)]
    np.testing.assert_allclose(code[3].numpy(), expected, atol=1e-5)  # second row, first column


# -- losses (golden figures: test_losses_golden.py)


def test_consistency_loss_prefers_given_labels_to_predictions_of_the_weak_view():
    weak = torch.tensor([[9.0, -9.0, 9.0]])
    strong = torch.zeros(1, 3, requires_grad=True)
    consistency_loss(weak, strong, torch.tensor([[-1.0, 1.0, 0.0]]), threshold=0.6).backward()
    assert strong.grad[0, 0] > 0  # said to be absent, though the weak view is sure it is there
    assert strong.grad[0, 1] < 0
    assert strong.grad[0, 2] < 0


def test_consistency_loss_ignores_masked_labels_in_both_views():
    weak, strong = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    for form in ("code", "paper"):
        weak.grad = strong.grad = None
        consistency_loss(weak, strong, torch.zeros(2, 3), mask, threshold=0.5, form=form).backward()
        assert (weak.grad[~mask] == 0).all()
        assert (strong.grad[~mask] == 0).all()
    assert consistency_loss(weak, strong, torch.zeros(2, 3), ~mask & mask, threshold=0.5) == 0


@pytest.mark.parametrize("form", ["code", "paper"])
def test_contrastive_loss_is_finite_for_empty_single_class_and_single_embedding_queues(form):
    pairs = torch.nn.functional.normalize(torch.randn(4, 2, 3), dim=-1).requires_grad_()
    for kinds in ([0, 0, 0, 0], [2, 2, 2, 2], [0, 1, 0, 0], [1, 2, 3, 1]):
        pairs.grad = None
        loss = contrastive_loss(pairs, torch.tensor(kinds), 0.1, form)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(pairs.grad).all()
        assert (pairs.grad[torch.tensor(kinds) == 0] == 0).all()


def test_paper_form_of_lagc_loss_equals_the_value_worked_out_by_hand():
    """Two images of three classes: one cell of class 1 and one of class 2 are assumed present, and the queue holds an
    older one of class 1. Views are e1 or e2, so at temperature 1/2 a product is 2 or 0:
    of class 1, both views e1: partners 2, 0, 0; log of the sum over class 2: log 2, three times;
    of class 2, both views e2: partner 2; log of the sum over class 1: log(2 + 2 e^2).
    """
    method = make_method("lagc", projection=2, queue=4, form="paper", first=0.0, weight_plc=0.0)
    method.begin(torch.tensor([[1, 0, 0], [0, 1, 0]], dtype=torch.int8), None, 1, torch.Generator())
    method.begin_epoch(1)
    e1, e2 = torch.eye(2)
    method.kept.push(torch.stack([e2, e2])[None], torch.tensor([1]))
    embeddings = torch.zeros(4, 3, 2)
    embeddings[[0, 2], 0], embeddings[[1, 3], 1] = e1, e2  # weak and strong view of the image
    found = method.loss((torch.zeros(4, 3), embeddings), torch.arange(2))
    terms = 2 * (2 - 3 * np.log(2)) + 2 * (2 - np.log(2 + 2 * np.e**2))
    assert found.item() == pytest.approx(3 * np.log(2) - terms / (2 * 2 * 3), abs=1e-6)


def test_embedding_queue_finds_the_slots_of_the_newest_batch():
    queue = EmbeddingQueue(5, 1)
    push(queue, 1, 2)
    push(queue, 3, 4)
    assert queue.find_newest_slots(2).tolist() == [False, False, True, True, False]
    push(queue, 5)
    assert queue.find_newest_slots(1).tolist() == [True, False, False, False, False]
    push(queue, 1, 2, 3, 4, 5, 6, 7)
    assert queue.find_newest_slots(7).all()


def test_lagc_losses_refuse_mismatched_shapes():
    with pytest.raises(ValueError, match=r"weak view are \(2, 3\)"):
        consistency_loss(torch.zeros(2, 3), torch.zeros(2, 2), torch.zeros(2, 3), threshold=0.5)
    with pytest.raises(ValueError, match=r"\(slots, 2, d\)"):
        contrastive_loss(torch.zeros(2, 3, 4), torch.zeros(2, dtype=torch.long))


def test_one_cycle_schedule_works_for_any_number_of_steps():
    for steps in range(1, 12):
        optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        schedule = make_one_cycle_schedule(optimiser, steps)
        for _ in range(steps - 1):
            optimiser.step()
            schedule.step()
        assert optimiser.param_groups[0]["lr"] <= 1e-4


# -- the queue


def push(queue: EmbeddingQueue, *kinds: int):
    pairs = torch.full((len(kinds), 2, 1), 1.0, requires_grad=True) * torch.tensor(kinds).view(-1, 1, 1)
    return queue.push(pairs, torch.tensor(kinds))


def test_embedding_queue_without_slots_returns_only_the_current_batch():
    queue = EmbeddingQueue(0, 1)
    assert push(queue, 1, 2)[1].tolist() == [1, 2] and push(queue, 3)[1].tolist() == [3]


def test_embedding_queue_wraps_to_its_start_before_it_is_filled():
    queue = EmbeddingQueue(5, 1)
    assert push(queue, 1, 2)[1].tolist() == [1, 2, 0, 0, 0]
    assert push(queue, 3, 4)[1].tolist() == [1, 2, 3, 4, 0]
    assert push(queue, 5)[1].tolist() == [5, 2, 3, 4, 0]  # 4 + 1 = 5 slots: no end is ever filled
    assert push(queue, 6, 7, 8)[1].tolist() == [5, 6, 7, 8, 0]
    assert int(queue.at) == 4


def test_embedding_queue_keeps_the_last_embeddings_of_an_oversized_batch():
    queue = EmbeddingQueue(3, 1)
    everything, kinds = push(queue, 1, 2, 3, 4, 5)
    assert kinds.tolist() == [3, 4, 5]
    assert everything[:, 0, 0].tolist() == [3, 4, 5]


def test_embedding_queue_passes_a_gradient_to_the_newest_batch_only():
    queue = EmbeddingQueue(6, 2)
    old, new = torch.randn(2, 2, 2, requires_grad=True), torch.randn(3, 2, 2, requires_grad=True)
    queue.push(old, torch.tensor([1, 2]))
    everything, _ = queue.push(new, torch.tensor([1, 1, 2]))
    everything.sum().backward()
    assert old.grad is None
    assert (new.grad == 1).all()
    assert torch.equal(queue.embeddings[:2], old)


# -- the method


def begun(epochs: int = 4, **parameters):
    method = make_method("lagc", projection=2, **parameters)
    method.begin(torch.tensor([[1, 0], [0, 1], [0, 0]], dtype=torch.int8), None, epochs, torch.Generator())
    return method


def test_second_lagc_stage_starts_halfway_with_a_new_optimizer_and_contrastive_loss():
    method, network = begun(), decoder()
    assert [method.restarts_optimizer(epoch) for epoch in (1, 2, 3, 4)] == [False, False, True, False]
    logits, rows = torch.randn(6, 2), torch.arange(3)
    embeddings = torch.nn.functional.normalize(torch.randn(6, 2, 2), dim=-1)
    found = []
    for epoch in (2, 3):
        method.prepare(network, epoch)
        method.begin_epoch(epoch)
        found.append((network.projecting, method.loss((logits, embeddings), rows), int(method.kept.at)))
    weak, strong = logits.chunk(2)
    first, second = (consistency_loss(weak, strong, method.targets, threshold=t) for t in (0.6, 0.9))
    assert found[0][0] is False
    assert found[0][1] == first
    assert found[0][2] == 0  # nothing enters the queue in the first stage
    assert found[1][0] is True
    assert found[1][1] > second
    assert found[1][2] >= 2  # both marked cells at least


def test_embedding_queue_excludes_absent_and_masked_labels():
    method = make_method("lagc", projection=2)
    labels = torch.tensor([[1, -1, 0, 1]], dtype=torch.int8)
    method.begin(labels, torch.tensor([[True, True, True, False]]), 2, torch.Generator())
    method.begin_epoch(2)
    method.loss((torch.full((2, 4), 9.0), torch.ones(2, 4, 2)), torch.tensor([0]))
    assert method.kept.classes[:3].tolist() == [1, 3, 0]


def test_second_lagc_stage_stops_early_after_eight_epochs_without_progress():
    method = begun(epochs=40)
    assert not method.should_stop_early([0.9] + [0.1] * 19)  # the first stage has its full time
    stage = [0.1] * 20 + [0.2, 0.5] + [0.4] * 8
    assert not method.should_stop_early(stage)
    assert method.should_stop_early([*stage, 0.4])


def test_published_lagc_settings_match_the_paper():
    for settings in METHODS["lagc"].published.values():
        assert (settings.lr, settings.weight_decay, settings.optimiser) == (1e-4, 0.01, "adamw_onecycle")
        assert (settings.epochs, settings.drop_last) == (2 * 40, True)
        method = make_method("lagc", **settings.parameters)
        assert (method.average_decay, method.average_warm_up, method.width) == (0.9997, False, 0)


# -- views


class Counting(Random):
    """Randomness that keeps the operations and magnitudes that were drawn; signs are always positive."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.drawn = []

    def choice(self, values):
        if values == (-1, 1):
            return 1
        self.drawn.append(super().choice(values))
        return self.drawn[-1]


def test_rand_augment_draws_two_of_fifteen_operations_and_applies_half_of_them(monkeypatch):
    carried_out = []
    for name in augment.OPERATION_NAMES:
        monkeypatch.setitem(augment.OPERATIONS, name, lambda picture, magnitude, _: carried_out.append(magnitude))
    random = Counting(0)
    for _ in range(2000):
        augment.rand_augment(Image.new("RGB", (2, 2)), random)
    names, magnitudes = random.drawn[::2], random.drawn[1::2]
    assert len(names) == 4000
    counts = {name: names.count(name) for name in augment.OPERATION_NAMES}
    assert len(counts) == 15
    assert all(4000 / 15 * 0.8 < count < 4000 / 15 * 1.2 for count in counts.values())
    assert set(magnitudes) == set(range(1, 10))
    assert 0.47 < len(carried_out) / 4000 < 0.53
    assert min(carried_out) == 1 / 9 and max(carried_out) == 1


@pytest.mark.parametrize(
    ("name", "magnitude", "expected"),
    [  # of a picture whose value at (row, column) is 10 x row + column, at row 8, column 5
        ("Invert", 5, 255 - 85),
        ("Solarize", 6, 85),  # the threshold is 256 x 3/9 = 85.3
        ("Solarize", 7, 170),  # 56.9
        ("Posterize", 9, 80),  # four bits: 85 = 0b1010101
        ("Posterize", 1, 85),  # round(8 - 4/9) = 8 bits
        ("Brightness", 2, 102),  # 1 + 0.9 x 2/9 = 1.2
        ("TranslateX", 9, 92),  # 150/331 of 16 is 7.2 columns to the right
        ("TranslateY", 9, 155),  # and as many rows down
        ("ShearX", 9, 87),  # 0.3 of 8.5 rows is 2.55 columns; Pillow cuts off
    ],
)
def test_augmentation_changes_a_pixel_by_its_magnitude(name, magnitude, expected):
    rows, columns = np.indices((16, 16))
    gray = (10 * rows + columns).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(np.stack([gray] * 3, 2))
    changed = augment.OPERATIONS[name](picture, magnitude / 9, Counting(0))
    assert changed.getpixel((5, 8)) == (expected,) * 3


def test_strong_view_depends_only_on_its_seed():
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    views = [np.asarray(augment.make_strong_view(picture, Random(seed))) for seed in (1, 1, 2)]
    assert views[0].shape == (40, 60, 3)
    assert np.array_equal(views[0], views[1])
    assert not np.array_equal(views[0], views[2])


def test_cutout_covers_a_quarter_of_the_image_unless_clipped_at_the_border():
    picture = Image.new("RGB", (100, 60), (7, 7, 7))
    shares = [(np.asarray(augment.cutout(picture, Random(seed))) != 7).any(2).mean() for seed in range(30)]
    assert 0.24 < max(shares) < 0.27
    assert min(shares) > 0.05


def test_feature_map_batches_use_random_views_in_training_and_plain_views_otherwise():
    maps = [np.full((4, 1, 2, 2), 10 * image) + np.arange(4).reshape(4, 1, 1, 1) for image in range(50)]
    examples = MapExamples(maps, weak=2)
    plain = examples.batch(torch.tensor([3, 1]), 1, False, torch.Generator())
    assert plain[:, 0, 0, 0].tolist() == [30, 10]
    drawn = examples.batch(torch.arange(50), 2, True, torch.Generator().manual_seed(0))[:, 0, 0, 0] % 10
    assert set(drawn[:50].tolist()) == {0, 1}
    assert set(drawn[50:].tolist()) == {2, 3}
    with pytest.raises(ValueError, match="images 1 are not finite"):
        MapExamples([maps[0], maps[1] * np.nan]).batch(torch.tensor([0, 1]), 1, False, torch.Generator())


# -- a project


@pytest.fixture(scope="module")
def network() -> FeatureMaps:
    return FeatureMaps(load_backbone("efficientnet_lite0"))


def test_feature_maps_average_to_the_embeddings_of_the_backbone(network):
    pictures = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    maps = network(pictures).float()
    assert maps.shape == (2, *network.shape)
    torch.testing.assert_close(maps.mean((2, 3)), network.backbone.features(pictures), rtol=1e-2, atol=1e-2)


def test_feature_maps_are_computed_once_and_a_damaged_image_is_reported_with_a_reason(network, photos, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8 cut off")
    items = [(1, photos / "00.jpg"), (2, tmp_path / "bad.jpg"), (3, photos / "01.jpg")]
    files = MapFiles(tmp_path / "maps", network, bands=NO_BAND_CHOICES)
    steps = list(files.make_maps(items, views=True))
    assert steps[-1][0] == 3
    [(key, reason)] = [bad for _, failures in steps for bad in failures.items()]
    assert key == 2
    assert "damaged" in reason or "truncated" in reason or "not an image" in reason
    assert files.read(1).shape == (WEAK_VIEW_COUNT + STRONG_VIEW_COUNT, *network.shape)
    assert files.has_maps(1, views=False)
    written = files.get_path(3, views=True).stat().st_mtime_ns
    assert [done for done, _ in files.make_maps([items[0], items[2]], views=True)] == []
    assert files.get_path(3, views=True).stat().st_mtime_ns == written


def test_reading_a_damaged_feature_map_raises_and_deletes_it(network, tmp_path):
    files = MapFiles(tmp_path, network, bands=NO_BAND_CHOICES)
    files.get_path(1, views=False).parent.mkdir()
    files.get_path(1, views=False).write_bytes(b"\x93NUMPY half")
    with pytest.raises(AnnotatorError, match="deleted; train again"):
        files.read(1)
    assert not files.has_maps(1, views=False)


def test_disk_space_check_raises_when_the_feature_maps_do_not_fit(tmp_path):
    check_disk_space(tmp_path / "maps", 1000)
    with pytest.raises(DiskFull, match="GB are free"):
        check_disk_space(tmp_path / "maps", 10**18)


def test_augmented_image_views_are_the_same_for_the_same_seed():
    plain = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8)
    once, again, other = make_views(plain, 7), make_views(plain, 7), make_views(plain, 8)
    assert torch.equal(once[1], plain.flip(2))
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))
    assert not torch.equal(once[2], other[2])


def test_linear_surrogate_head_approximates_the_probabilities_of_another_model():
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 6)).astype(np.float32)
    head = Head(6, 3)
    head.weight, head.bias = torch.randn(3, 6), torch.tensor([0.5, -2.0, torch.nan])
    wanted = head.probabilities(features)
    wanted[4] = np.nan
    found = fit_surrogate_head(features.astype(np.float16), wanted)
    assert found.modeled_classes.tolist() == [True, True, False]
    rows = np.arange(300) != 4
    assert np.abs(found.probabilities(features) - wanted)[rows][:, :2].mean() < 0.03


@pytest.fixture
def labeled(db):
    """Twelve images with one click each, fox or heron, and a method that is quickly trained."""
    configuration.set_backbone(db, "efficientnet_lite0")
    configuration.set_method(db, "lagc", {"width": 8, "projection": 4})
    known = {one.name: one.id for one in classes.load_active_classes(db)}
    for number, image in enumerate(images.load_all_images(db)[:12]):
        name = ("fox", "heron")[number % 2]
        decisions.save(db, [Decision(str(number), "label", "Ann", "click", image.id, known[name], 1)])
    return db, known


@pytest.mark.slow
@pytest.mark.training
def test_lagc_training_of_a_project_stores_probabilities_and_heatmaps(labeled, project):
    db, known = labeled
    worker, told = Worker(project), []
    say = worker.context.report_state
    worker.context.report_state = lambda *words: (told.append(words), say(*words))
    try:
        run = worker.run_once()
        assert (run.method, run.epochs) == ("lagc", make_method("lagc").epochs)
        worker.heatmap_drawer.draw(run.id, 1, [known["fox"]])
    finally:
        worker.close()
    assert db.paths.heatmap(run.id, 1, known["fox"]).exists()
    probabilities = arrays.open_array(db.paths.run(run.id) / "probabilities.npy")
    columns = [run.class_ids.index(known[name]) for name in ("fox", "heron", "deer")]
    assert probabilities.shape == (24, 3)
    assert np.isfinite(probabilities[:, columns[:2]]).all()
    assert np.isnan(probabilities[:, columns[2]]).all()  # nobody marked a deer
    assert {"making feature maps", "training", "asking about all images"} <= {state for state, *_ in told}
    kept = db.paths.features("efficientnet_lite0") / "maps"
    assert len(list((kept / "views").iterdir())) == 12
    assert len(list((kept / "plain").iterdir())) == 12


@pytest.mark.training
def test_stopped_worker_keeps_the_feature_maps_it_has_computed(labeled, project):
    db, _ = labeled
    worker = Worker(project)
    say = worker.context.report_state

    def stop_at_the_maps(state, done=0, of=0):
        say(state, done, of)
        if state == "making feature maps" and done:
            worker.stop()

    worker.context.report_state = stop_at_the_maps
    try:
        with pytest.raises(Stopped):
            worker.run_once()
    finally:
        worker.close()
    made = list((db.paths.features("efficientnet_lite0") / "maps" / "views").iterdir())
    assert 0 < len(made) <= 12
    assert runs.load_current_run(db) is None


@pytest.mark.slow
@pytest.mark.training
def test_lagc_training_stores_predictions_for_an_image_whose_file_is_missing(labeled, project, photos):
    db, known = labeled
    worker = Worker(project)
    try:
        worker.image_embedder.embed_missing()
        gone = images.load_all_images(db)[0]
        images.find_image_path(db, gone.id).unlink()
        run = worker.run_once()
    finally:
        worker.close()
    ids = arrays.open_array(db.paths.run(run.id) / "image_ids.npy")
    row = arrays.open_array(db.paths.run(run.id) / "probabilities.npy")[ids == gone.id][0]
    assert np.isfinite(row[run.class_ids.index(known["fox"])])
