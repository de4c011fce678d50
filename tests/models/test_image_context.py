"""The rate of a class at a place and hour: without the image's own event, drawn to the level above, and an input."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit

from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.linear.training import TrainingSettings
from spmll.methods.auto import Auto
from spmll.statistics.image_context import DAY_SECONDS, MAX_INPUT, PARTS_OF_DAY, PRIOR_EVENTS, ImageContext

IMAGES = 12
WORTH = PRIOR_EVENTS


def by_hand(context: ImageContext, labels: np.ndarray, image: int) -> float:
    """The input of one image and the only class, event by event: labels (N,), 0 where nobody has answered."""
    hour_of = {}
    for event in set(context.events.tolist()):
        times = context.times[context.events == event]
        hour_of[event] = (
            np.nanmin(times) % DAY_SECONDS * PARTS_OF_DAY // DAY_SECONDS if np.isfinite(times).any() else None
        )
    share_of = {
        event: float((answers == 1).mean())
        for event in set(context.events.tolist())
        if len(answers := labels[(context.events == event) & (labels != 0)]) and event != context.events[image]
    }
    place_of = dict(zip(context.events.tolist(), context.places.tolist(), strict=True))
    here = {event: share for event, share in share_of.items() if place_of[event] == context.places[image]}
    if not here:
        return np.nan
    now = [share for event, share in here.items() if hour_of[event] == hour_of[int(context.events[image])]]
    base = (sum(share_of.values()) + 0.5) / (len(share_of) + 1)
    rate = (sum(here.values()) + WORTH * base) / (len(here) + WORTH)
    rate = (sum(now) + WORTH * rate) / (len(now) + WORTH)
    return float(np.clip(logit(rate) - logit(base), -MAX_INPUT, MAX_INPUT))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=IMAGES, max_size=IMAGES),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
    st.lists(st.sampled_from([np.nan, 0.0, 30_000.0, 90_000.0]), min_size=IMAGES, max_size=IMAGES),
    st.lists(st.integers(-1, 1), min_size=IMAGES, max_size=IMAGES),
)
def test_class_rate_at_a_place_and_hour_matches_a_hand_count_over_other_events(events, place_of, times, labels):
    context = ImageContext(np.array(events), np.array(place_of)[events], np.array(times))
    answers = np.array(labels, np.int8)
    rows = np.flatnonzero(answers)
    found = context.compute_inputs(rows, answers[rows, None], np.ones((len(rows), 1), bool))
    wanted = np.array([by_hand(context, answers, image) for image in range(IMAGES)])
    if not found:
        assert np.isnan(wanted).all()
    else:
        np.testing.assert_allclose(found[0][:, 0], wanted, atol=1e-5)


def of_places(informative: bool) -> tuple[np.ndarray, ...]:
    """Features that say nothing, two classes of which each is at one of two places, if informative, and the context."""
    rng = np.random.default_rng(0)
    places = np.arange(400) // 4 % 2
    truth = np.stack([places == 0, places == 1], 1) if informative else rng.random((400, 2)) < 0.5
    features = rng.random((400, 8)).astype(np.float16)
    return features, np.where(truth, 1, -1).astype(np.int8), places


def probabilities(features, labels, context) -> np.ndarray:
    rows = np.arange(200)
    model = fit_stacked(
        Auto(),
        AnsweredImages(
            features,
            None,
            rows,
            labels[:200],
            unbiased=np.ones((200, 2), bool),
            groups=np.arange(400) // 4,
            context=context,
        ),
        TrainingSettings(epochs=2),
    )
    for _ in model.epochs():
        pass
    assert model.probabilities is not None and model.outside_weights is not None
    assert model.outside_weights.shape == (2, 0)
    return model.probabilities


def test_place_context_improves_predictions_only_of_a_class_that_depends_on_the_place():
    features, labels, places = of_places(informative=True)
    context = ImageContext(np.arange(400) // 4, places, np.full(400, np.nan))
    found = probabilities(features, labels, context)[200:]
    assert found[labels[200:] == 1].min() > 0.8 > 0.2 > found[labels[200:] == -1].max()
    features, labels, places = of_places(informative=False)
    without, used = (probabilities(features, labels, one)[200:] for one in (None, context))
    assert np.abs(used - without).mean() < 0.05


def test_context_of_places_with_one_event_each_leaves_predictions_unchanged():
    features, labels, _ = of_places(informative=True)
    alone = ImageContext(np.arange(400) // 4, np.arange(400) // 4, np.full(400, np.nan))
    np.testing.assert_array_equal(probabilities(features, labels, alone), probabilities(features, labels, None))
