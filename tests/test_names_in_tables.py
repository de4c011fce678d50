"""A wrong name in any table is refused by an error that lists all the right ones."""

import re
from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotator.benchmark import datasets, differing, interface
from annotator.benchmark.collections import measure as collections
from annotator.benchmark.collections.recipes import COLLECTIONS
from annotator.benchmark.effort import measure as effort
from annotator.benchmark.effort.policies import POLICIES
from annotator.benchmark.faults import interrupted
from annotator.benchmark.faults.scenes import SCENES
from annotator.benchmark.finish import measure as finish
from annotator.benchmark.finish.sets import SETS
from annotator.benchmark.finish.tools import TOOLS
from annotator.benchmark.methods.options import REGIMES
from annotator.benchmark.methods.options import Options as MethodOptions
from annotator.benchmark.scale import measure as scale
from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS, find_format
from annotator.exchange.predictions.score_tables import read_scores
from annotator.quality.differing import WAYS
from annotator.queues.query_order import QUERY_ORDERS, find_strategy
from annotator.records import SOURCES, STATES
from annotator.roles import Role, role_named
from annotator.store.networks import configuration
from models.backbones.packaged import PACKAGED
from models.backbones.pretrained import pretrained
from models.losses import LOSSES, make_loss
from models.losses.base import REDUCTIONS
from models.methods import METHODS, defaults_of, make_method
from models.query_strategies import STRATEGIES, order
from models.statistics.calibration import CALIBRATIONS, fit
from models.trainers import TRAINERS, trainer_class

WRONG = "no such name"
NO_ANSWERS = np.zeros((0, 1)), np.zeros(0), np.zeros(0)


def _raised(choices: Choices) -> None:
    raise AnnotatorError("\n".join(choices.problems()))


LOOKED_UP: dict[str, tuple[Callable[[], Any], Iterable[str]]] = {
    "loss": (lambda: make_loss(WRONG), LOSSES),
    "reduction of a loss": (lambda: make_loss("focal", WRONG), REDUCTIONS),
    "constant of a loss": (lambda: make_loss("focal", **{WRONG: 1}), signature(LOSSES["focal"]).parameters),
    "method": (lambda: make_method(WRONG), METHODS),
    "defaults of a method": (lambda: defaults_of(WRONG), METHODS),
    "method of a project": (lambda: configuration.about(WRONG), METHODS),
    "parameter of a method": (lambda: make_method("em", **{WRONG: 1}), defaults_of("em")),
    "input of a trainer": (lambda: trainer_class(WRONG), TRAINERS),
    "query strategy": (
        lambda: order(WRONG, None, None, np.zeros((1, 1), np.int8), np.arange(1), np.random.default_rng(0)),
        STRATEGIES,
    ),
    "query order": (lambda: find_strategy(WRONG), QUERY_ORDERS),
    "backbone": (lambda: pretrained(WRONG), PACKAGED),
    "calibration": (lambda: fit(WRONG, *NO_ANSWERS, np.zeros(0), 1), CALIBRATIONS),
    "format": (lambda: find_format(WRONG), FORMATS),
    "format to read": (
        lambda: find_format(WRONG, "read"),
        [name for name, format_ in FORMATS.items() if format_.read],
    ),
    "format to write": (
        lambda: find_format(WRONG, "write"),
        [name for name, format_ in FORMATS.items() if format_.write],
    ),
    "format of scores": (
        lambda: read_scores(Path(), Problems(), WRONG),
        ["npy", *(name for name, format_ in FORMATS.items() if format_.read and name not in ("csv", "tsv"))],
    ),
    "state of an export": (lambda: _raised(Choices(states=(WRONG,))), STATES),
    "source of an export": (lambda: _raised(Choices(sources=(WRONG,))), SOURCES),
    "way of an export": (lambda: _raised(Choices(differing=WRONG)), WAYS),
    "role": (lambda: role_named(WRONG), list(Role)),
    "row of bench interface": (lambda: interface.measure(rows=[WRONG]), interface.ROWS),
    "step of bench scale": (lambda: scale.measure(steps=[WRONG]), scale.STEPS),
    "command of bench interrupted": (lambda: interrupted.measure(names=[WRONG]), SCENES),
    "policy of bench effort": (lambda: effort.measure(policies=[WRONG]), POLICIES),
    "way of bench differing": (lambda: differing.measure(ways=[WRONG]), differing.WAYS),
    "collection of bench collections": (lambda: collections.measure(made=[WRONG]), COLLECTIONS),
    "set of bench finish": (lambda: finish.measure(finish.Options(sets=[WRONG])), SETS),
    "person of bench finish": (lambda: finish.measure(finish.Options(persons=[WRONG])), finish.PERSONS),
    "tool of bench finish": (lambda: finish.measure(finish.Options(tools=[WRONG])), TOOLS),
    "data set of bench methods": (lambda: datasets.load(WRONG, Path()), datasets.DATASETS),
    "method of bench methods": (lambda: MethodOptions(methods=(WRONG,)).checked(), METHODS),
    "regime of bench methods": (lambda: MethodOptions(methods=("em",), regime=WRONG).checked(), REGIMES),
}


@pytest.mark.parametrize("kind", LOOKED_UP)
def test_a_wrong_name_is_told_with_all_the_right_ones(kind):
    look_up, names = LOOKED_UP[kind]
    with pytest.raises((AnnotatorError, ValueError)) as caught:
        look_up()
    told = str(caught.value)
    unnamed = [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told)]
    assert WRONG in told and not unnamed, told
