"""What a paper does around its loss: schedules, guesses, and the table of methods."""

import pytest
import torch
from harness.tables import over

from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.methods import DEFAULT_METHOD, METHODS, get_default_parameters, make_method
from spmll.methods.published.em_apl import write_pseudo_negatives
from spmll.methods.training_recipes import BENCHMARK_SETS, shared_protocol

every_method = over(name=METHODS)


def begun(name, labels, mask=None, epochs=10, **parameters):
    method = make_method(name, **parameters)
    method.begin(torch.tensor(labels, dtype=torch.int8), mask, epochs, torch.Generator())
    return method


@every_method
def test_every_method_has_complete_metadata(name):
    method = METHODS[name]
    assert method.name == name
    assert all((method.title, method.paper, method.url))
    assert 2017 <= method.year <= 2030
    assert "\n" not in method.assumes
    assert method.assumes.endswith(".")
    assert 0 < method.threshold < 1
    assert method.epochs >= 1
    assert method.lr > 0


@every_method
def test_method_can_be_rebuilt_from_its_parameters(name):
    method = make_method(name)
    assert method.parameters == get_default_parameters(name)
    for some, value in method.parameters.items():
        if isinstance(value, float):
            changed = make_method(name, **{some: value / 2 or 0.25})
            assert changed.parameters == method.parameters | {some: value / 2 or 0.25}
            assert make_method(name, **changed.parameters).parameters == changed.parameters


@every_method
def test_tunable_values_are_accepted_and_include_the_default(name):
    defaults = get_default_parameters(name)
    assert len(METHODS[name].tunable) <= 3
    for constant, values in METHODS[name].tunable.items():
        assert defaults[constant] in values
        assert 2 <= len(values) <= 5
        for value in values:
            assert make_method(name, **{constant: value}).parameters[constant] == value


@every_method
def test_published_settings_cover_every_benchmark_set_and_build_the_method(name):
    published = METHODS[name].published
    assert not published or tuple(published) == BENCHMARK_SETS
    for settings in published.values():
        method = make_method(name, **settings.parameters)
        assert method.parameters == get_default_parameters(name) | settings.parameters
        assert settings.lr > 0 and settings.batch >= 1 and settings.epochs >= 1


@every_method
def test_methods_do_not_stop_training_early_while_the_validation_score_rises(name):
    method = begun(name, [[1, 0], [0, 1]])
    assert not any(method.should_stop_early(scores) for scores in ([], [0.5], [0.4, 0.5]))


@over(
    name__goes_on__ends=[
        ("em", [0.5, 0.51, 0.52], [0.5, 0.52, 0.52]),
        ("em_apl", [0.5, 0.51, 0.52], [0.5, 0.52, 0.51]),
        ("gr", [0.5, 0.6, 0.581], [0.5, 0.6, 0.579]),
        ("ll_r", [0.6, 0.571], [0.6, 0.569]),
    ]
)
def test_early_stopping_matches_the_rule_of_each_method(name, goes_on, ends):
    assert not make_method(name).should_stop_early(goes_on)
    assert make_method(name).should_stop_early(ends)


def test_shared_protocol_refuses_a_constant_without_one_value_per_benchmark_set():
    with pytest.raises(ValueError, match=r"k has 2 values.*voc, coco, nus, cub"):
        shared_protocol(k=(1.5, 2.9))


def test_default_method_is_auto_and_trains_on_region_embeddings():
    assert DEFAULT_METHOD == make_method().name == "auto"
    assert make_method().reads == "regions" and not make_method().full_labels


def test_make_method_refuses_an_unknown_method_and_lists_the_known_ones():
    with pytest.raises(ValueError, match="Did you mean 'em_apl'") as caught:
        make_method("em-apl")
    assert all(name in str(caught.value) for name in METHODS)
    with pytest.raises(ValueError, match="no method 'xyzzy'"):
        get_default_parameters("xyzzy")


def test_make_method_refuses_an_unknown_parameter_and_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"Did you mean 'warm_up'.*alpha, beta, negatives, warm_up, eps"):
        make_method("em_apl", warmup=0.3)


@over(
    name__parameters=[
        ("an", {"eps": -1.0}),
        ("em_apl", {"negatives": 1.5}),
        ("em_apl", {"alpha": -0.1}),
        ("gr", {"sigma": 0.0}),
        ("gr", {"schedule": "codes"}),
        ("an_ls", {"negative": 1.5}),
        ("an_ls", {"form": "codes"}),
        ("wan", {"gamma": -0.1}),
        ("epr", {"k": 0.0}),
        ("epr", {"strength": -1.0}),
        ("role", {"k": float("inf")}),
        ("role", {"lr_scale": 0.0}),
        ("role", {"form": "codes"}),
        ("role+linear_init", {"linear": 1.5}),
        ("em", {"alpha": float("nan")}),
        ("opml", {"a": float("inf")}),
        ("opml_sp", {"rule": "none"}),
        ("opml_sp", {"correct": "never"}),
        ("opml_sp", {"rank": "trace"}),
        ("opml_sp", {"delta": 0.0}),
        ("opml_sp", {"rho": 2.0}),
        ("ll_r", {"delta": -0.1}),
        ("ll_ct", {"delta": 101.0}),
        ("ll_cp", {"delta": float("nan")}),
        ("boostlu", {"alpha": 0.5}),
        ("boostlu", {"scheme": "ll"}),
        ("boostlu", {"delta": -1.0}),
        ("smile", {"prior": 0.0}),
        ("smile", {"warm_up": 1.5}),
        ("smile", {"neighbours": 0}),
        ("splc", {"tau": 1.1}),
        ("splc", {"change_epoch": -1}),
        ("hill", {"form": "grr"}),
        ("asl", {"clip": 1.0}),
        ("focal", {"gamma_neg": -2.0}),
        ("en", {"momentum": 1.0}),
        ("en", {"k": -1.5}),
        ("oracle", {"eps": -1.0}),
        ("auto", {"parts_of_ridge": 1.5}),
        ("auto", {"head": -0.1}),
        ("auto", {"ridge": 0.0}),
        ("auto", {"sharpness": float("nan")}),
    ]
)
def test_make_method_refuses_an_invalid_parameter_by_name(name, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        make_method(name, **parameters)


@every_method
def test_second_training_with_the_same_method_object_equals_the_first(name):
    labels = torch.tensor([[1, 0], [0, 1], [1, 0], [0, 0]], dtype=torch.int8)
    logits = torch.tensor([[2.0, -1.0], [0.1, 0.4], [1.0, -0.5], [0.3, 0.2]])
    method = make_method(name)

    def training():
        seen = []
        method.begin(labels, None, 4, torch.Generator())
        for epoch in range(1, 5):
            method.begin_epoch(epoch)
            seen.append(method.loss(logits, torch.arange(4)).item())
            method.end_epoch(epoch, lambda: torch.sigmoid(logits))
        return seen

    assert training() == training()


@every_method
def test_training_never_changes_the_given_labels(name):
    labels = torch.tensor([[1, 0], [0, 1], [0, -1]], dtype=torch.int8)
    before = labels.clone()
    method = make_method(name)
    method.begin(labels, None, 4, torch.Generator())
    for epoch in range(1, 5):
        method.end_epoch(epoch, lambda: torch.full((3, 2), 0.4))
    assert torch.equal(labels, before)


@every_method
def test_method_loss_uses_the_labels_and_mask_of_the_batch_rows(name):
    labels = [[PRESENT, UNSEEN], [ABSENT, PRESENT], [UNSEEN, PRESENT]]
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    method = begun(name, labels, mask)
    method.begin_epoch(1)
    logits = torch.tensor([[0.3, 9.0]], requires_grad=True)
    method.loss(logits, torch.tensor([1])).backward()
    # Row 1 says absent; a ranking of pairs has no pair there, as the only positive may not be used.
    assert logits.grad[0, 0] > 0 or (name == "pr" and logits.grad[0, 0] == 0)
    assert logits.grad[0, 1] == 0  # and its second cell may not be used


def test_gr_reaches_its_final_weight_in_the_last_epoch_only_with_the_paper_schedule():
    by_code, by_paper = begun("gr", [[1, 0]]), begun("gr", [[1, 0]], schedule="paper")
    for method in (by_code, by_paper):
        method.begin_epoch(10)
    assert by_paper.loss_function.w == pytest.approx(2.0)
    assert by_code.loss_function.w == pytest.approx(1.8)
    assert by_code.loss_function.sigma == by_paper.loss_function.sigma == pytest.approx(0.5)


def test_gr_schedule_depends_on_the_fraction_of_epochs():
    short, long = begun("gr", [[1, 0]], epochs=4), begun("gr", [[1, 0]], epochs=40)
    short.begin_epoch(3)
    long.begin_epoch(21)
    assert short.loss_function.w == pytest.approx(long.loss_function.w) == pytest.approx(1.0)


def test_em_apl_adds_its_share_of_pseudo_negatives_and_keeps_given_labels():
    generator = torch.Generator().manual_seed(0)
    labels = torch.zeros(101, 2, dtype=torch.int8)
    labels[0, 0], labels[1, 1], labels[2, 1] = PRESENT, PRESENT, ABSENT
    probabilities = torch.rand(101, 2, generator=generator)
    method = begun("em_apl", labels.tolist(), epochs=20)
    given_up = []
    for epoch in range(1, 21):
        method.end_epoch(epoch, lambda: probabilities)
        given_up.append(int(((method.targets < 0) & (labels == UNSEEN)).sum()))
    assert given_up[8] == 0
    assert given_up[9] > 0
    assert given_up[19] == given_up[18] == 10 * 9 + 10 * 8  # int(.9 x 100 / 10), int(.9 x 99 / 10), ten times
    assert torch.equal(method.targets[labels != UNSEEN], labels[labels != UNSEEN].float())


def test_em_apl_adds_no_pseudo_negatives_to_masked_labels():
    mask = torch.ones(20, 1, dtype=torch.bool)
    mask[5:] = False
    method = begun("em_apl", [[0]] * 20, mask, epochs=2, negatives=1.0)
    assert method.counts.tolist() == [5]
    method.end_epoch(1, lambda: torch.linspace(1, 0, 20)[:, None])
    assert (method.targets[:5] < 0).all()
    assert (method.targets[5:] == 0).all()


def test_em_apl_computes_no_predictions_after_the_last_epoch():
    method = begun("em_apl", [[1, 0], [0, 1]], epochs=1)
    method.end_epoch(1, lambda: pytest.fail("asked after the only epoch"))


def test_pseudo_negatives_are_the_least_likely_unseen_labels_with_their_probability():
    targets = torch.tensor([[0.0], [1.0], [0.0], [-0.5], [0.0]])
    write_pseudo_negatives(targets, torch.tensor([[0.4], [0.01], [0.2], [0.0], [0.3]]), torch.tensor([2]))
    assert targets[:, 0].tolist() == pytest.approx([0.0, 1.0, -0.2, -0.5, -0.3])


def test_pseudo_negative_count_above_the_number_of_unseen_labels_selects_all_of_them():
    targets = torch.tensor([[0.0], [1.0]])
    write_pseudo_negatives(targets, torch.tensor([[0.4], [0.1]]), torch.tensor([9]))
    assert targets[:, 0].tolist() == pytest.approx([-0.4, 1.0])


@pytest.mark.parametrize("saturated", [0.0, 1.0])
def test_pseudo_negative_of_a_saturated_probability_stays_between_absent_and_unseen(saturated):
    targets = torch.zeros(1, 1)
    write_pseudo_negatives(targets, torch.tensor([[saturated]]), torch.tensor([1]))
    assert ABSENT < targets.item() < UNSEEN
    assert targets.item() == pytest.approx(-saturated, abs=1e-6)
