"""Requested and stored comparisons of other backbones with the current one."""

import shutil
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.networks import adapted_networks, configuration
from annotator.store.networks.network_judgement import NetworkJudgement

TO_COMPARE_SETTING, COMPARISONS_SETTING, TO_MEASURE_SETTING = (
    "backbones_to_compare",
    "compared_backbones",
    "backbones_to_measure",
)


@dataclass(frozen=True)
class NetworkComparison(NetworkJudgement):
    """A cross-validated comparison with the current backbone on unbiased answers."""

    name: str
    # current backbone at the time
    against: str
    # unix seconds
    at: float
    # log_loss_low, log_loss_high: 95% interval of the difference in log loss
    log_loss_low: float = 0.0
    log_loss_high: float = 0.0
    images: int = 0
    answers: int = 0
    classes: int = 0
    error: str = ""

    @property
    def gain(self) -> float:
        """Return the gain in mean average precision."""
        return self.ap_after - self.ap_before

    @property
    def verdict(self) -> str:
        """Return the comparison's result in words, such as "is better than"."""
        if self.is_better:
            return "is better than"
        return "is worse than" if self.ap_high < 0 else "is not clearly better than"


def load_requested(db: Database) -> list[str]:
    return _load_names(db, TO_COMPARE_SETTING)


def request_comparison(db: Database, names: list[str]) -> None:
    with db.writing():
        db.set_setting(TO_COMPARE_SETTING, list(dict.fromkeys([*load_requested(db), *names])))


def withdraw_request(db: Database, name: str) -> None:
    with db.writing():
        db.set_setting(TO_COMPARE_SETTING, [other for other in load_requested(db) if other != name])


def load_requested_speeds(db: Database) -> list[str]:
    return _load_names(db, TO_MEASURE_SETTING)


def request_speed(db: Database, name: str, wanted: bool = True) -> None:
    """Request or withdraw a speed measurement by the idle worker."""
    with db.writing():
        others = [other for other in load_requested_speeds(db) if other != name]
        db.set_setting(TO_MEASURE_SETTING, [*others, name] if wanted else others)


def save_comparison(db: Database, compared: NetworkComparison) -> None:
    """Store a comparison and withdraw its request."""
    with db.writing():
        db.set_setting(COMPARISONS_SETTING, _load_stored(db) | {compared.name: asdict(compared)})
        withdraw_request(db, compared.name)


def load_comparisons(db: Database) -> list[NetworkComparison]:
    """Return all readable comparisons, oldest first."""
    found: list[NetworkComparison] = []
    for facts in _load_stored(db).values():
        try:
            found.append(NetworkComparison(**{field.name: facts[field.name] for field in fields(NetworkComparison)}))
        except (KeyError, TypeError):
            continue
    return sorted(found, key=lambda one: one.at)


def delete_network(db: Database, name: str) -> bool:
    """Delete a backbone's embeddings, map and comparison. Return whether any existed.

    Raises:
        AnnotatorError: The backbone is in use or next.
    """
    if name in (configuration.get_backbone(db), adapted_networks.get_next_backbone(db)):
        raise AnnotatorError(f"{name} is in use. Use another network first: annotator backbone PROJECT --use NAME")
    with db.writing():
        was_known = name in _load_stored(db) or name in load_requested(db)
        db.set_setting(
            COMPARISONS_SETTING, {other: facts for other, facts in _load_stored(db).items() if other != name}
        )
        withdraw_request(db, name)
    for place in (db.paths.features(name), db.paths.map(name)):
        was_known |= place.exists()
        shutil.rmtree(place, ignore_errors=True)
    return was_known


def _load_names(db: Database, setting: str) -> list[str]:
    stored = db.get_setting(setting, [])
    return [str(name) for name in cast(list[Any], stored)] if isinstance(stored, list) else []


def _load_stored(db: Database) -> dict[str, Any]:
    stored = db.get_setting(COMPARISONS_SETTING, {})
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}
