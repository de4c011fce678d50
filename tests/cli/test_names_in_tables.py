"""A wrong name in any table is refused by an error that lists all the right ones."""

import re
from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import interface
from benchmarks.faults import command_kills
from benchmarks.faults.scenes import SCENES
from benchmarks.scale import scale_measurement

from annotator.benchmark import datasets
from annotator.benchmark.certificate import coverage_measurement
from annotator.benchmark.certificate.simulated_projects import PROJECT_KINDS
from annotator.benchmark.collections import collections_comparison
from annotator.benchmark.collections.recipes import COLLECTION_NAMES
from annotator.benchmark.effort import effort_measurement
from annotator.benchmark.effort.effort_measurement import EffortOptions
from annotator.benchmark.effort.policies import POLICIES
from annotator.benchmark.finish import finish_measurement
from annotator.benchmark.finish.sets import SET_DESCRIPTIONS
from annotator.benchmark.finish.tools import TOOLS
from annotator.benchmark.methods.comparison_options import REGIME_NAMES, Options
from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS, find_format
from annotator.exchange.predictions.score_files import read_scores
from annotator.quality.disagreement_resolution import RESOLUTIONS
from annotator.queues.query_order import QUERY_ORDERS, find_strategy
from annotator.records import SOURCES, STATES
from annotator.roles import Role, parse_role
from annotator.store.networks import configuration
from spmll.backbones.packaged import PACKAGED_BACKBONES
from spmll.backbones.pretrained import load_pretrained
from spmll.losses import LOSSES, make_loss
from spmll.losses.base import REDUCTIONS
from spmll.methods import METHODS, get_default_parameters, make_method
from spmll.query_strategies import STRATEGIES, order_candidates
from spmll.statistics.calibration import CALIBRATIONS, fit_calibration
from spmll.trainers import TRAINERS, get_trainer_class

WRONG = "no such name"
NO_ANSWERS = np.zeros((0, 1)), np.zeros(0), np.zeros(0)


def _raised(choices: Choices) -> None:
    raise AnnotatorError("\n".join(choices.problems()))


LOOKED_UP: dict[str, tuple[Callable[[], Any], Iterable[str]]] = {
    "loss": (lambda: make_loss(WRONG), LOSSES),
    "reduction of a loss": (lambda: make_loss("focal", WRONG), REDUCTIONS),
    "constant of a loss": (lambda: make_loss("focal", **{WRONG: 1}), signature(LOSSES["focal"]).parameters),
    "method": (lambda: make_method(WRONG), METHODS),
    "defaults of a method": (lambda: get_default_parameters(WRONG), METHODS),
    "method of a project": (lambda: configuration.get_method_entry(WRONG), METHODS),
    "parameter of a method": (lambda: make_method("em", **{WRONG: 1}), get_default_parameters("em")),
    "input of a trainer": (lambda: get_trainer_class(WRONG), TRAINERS),
    "query strategy": (
        lambda: order_candidates(WRONG, None, None, np.zeros((1, 1), np.int8), np.arange(1), np.random.default_rng(0)),
        STRATEGIES,
    ),
    "query order": (lambda: find_strategy(WRONG), QUERY_ORDERS),
    "backbone": (lambda: load_pretrained(WRONG), PACKAGED_BACKBONES),
    "calibration": (lambda: fit_calibration(WRONG, *NO_ANSWERS, np.zeros(0), 1), CALIBRATIONS),
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
    "way of an export": (lambda: _raised(Choices(differing=WRONG)), RESOLUTIONS),
    "role": (lambda: parse_role(WRONG), list(Role)),
    "row of bench interface": (lambda: interface.measure(rows=[WRONG]), interface.ROW_MEASUREMENTS),
    "step of bench scale": (lambda: scale_measurement.measure(steps=[WRONG]), scale_measurement.REPORTED_STEPS),
    "command of bench interrupted": (lambda: command_kills.measure(names=[WRONG]), SCENES),
    "policy of bench effort": (lambda: effort_measurement.measure_effort(options=EffortOptions([WRONG])), POLICIES),
    "collection of bench collections": (
        lambda: collections_comparison.measure_collections(made=[WRONG]),
        COLLECTION_NAMES,
    ),
    "set of bench finish": (
        lambda: finish_measurement.measure_tools(finish_measurement.Options(sets=[WRONG])),
        SET_DESCRIPTIONS,
    ),
    "person of bench finish": (
        lambda: finish_measurement.measure_tools(finish_measurement.Options(persons=[WRONG])),
        finish_measurement.PERSON_KINDS,
    ),
    "tool of bench finish": (
        lambda: finish_measurement.measure_tools(finish_measurement.Options(tools=[WRONG])),
        TOOLS,
    ),
    "kind of bench certificate": (lambda: coverage_measurement.measure_certificates((WRONG,)), PROJECT_KINDS),
    "data set of bench methods": (lambda: datasets.load_dataset(WRONG, Path()), datasets.DATASETS),
    "method of bench methods": (lambda: Options(methods=(WRONG,)).check_and_resolve(), METHODS),
    "regime of bench methods": (lambda: Options(methods=("em",), regime=WRONG).check_and_resolve(), REGIME_NAMES),
}


@pytest.mark.parametrize("kind", LOOKED_UP)
def test_lookup_of_an_unknown_name_in_any_registry_lists_all_known_names(kind):
    look_up, names = LOOKED_UP[kind]
    with pytest.raises((AnnotatorError, ValueError)) as caught:
        look_up()
    told = str(caught.value)
    unnamed = [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told)]
    assert WRONG in told and not unnamed, told
