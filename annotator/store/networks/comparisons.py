"""Networks that are compared with the one in use: which are wanted, how they compare, and what is kept of them.

Their features lie beside those of the network in use (PROJECT/features/NAME), which stay; nothing is deleted unasked.
"""

import shutil
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.networks import adapted, configuration

WANTED, COMPARED, SPEEDS = "backbones_to_compare", "compared_backbones", "backbones_to_measure"


@dataclass(frozen=True)
class Compared:
    """How a network compares with the one that was in use, by cross-validation on this project's unbiased answers.

    name, against     the network, and the one that was in use
    at                unix seconds
    ap_before ...     mean average precision of a linear head on the features of either; ap_low, ap_high: the 95 %
                      interval of the difference; log_loss_... of the same
    images, answers, classes    on which they were compared
    is_better         ranks better by more than its interval, and its log loss is not worse by more than its own
    error             why they were not compared; "" when they were
    """

    name: str
    against: str
    at: float
    ap_before: float = 0.0
    ap_after: float = 0.0
    ap_low: float = 0.0
    ap_high: float = 0.0
    log_loss_before: float = 0.0
    log_loss_after: float = 0.0
    log_loss_low: float = 0.0
    log_loss_high: float = 0.0
    images: int = 0
    answers: int = 0
    classes: int = 0
    is_better: bool = False
    error: str = ""

    @property
    def gain(self) -> float:
        """Of mean average precision."""
        return self.ap_after - self.ap_before

    @property
    def verdict(self) -> str:
        """As it stands between the two names."""
        if self.is_better:
            return "is better than"
        return "is worse than" if self.ap_high < 0 else "is not clearly better than"


def wanted(db: Database) -> list[str]:
    """Networks whose features are to be computed and compared, in this order."""
    return _names(db, WANTED)


def want(db: Database, names: list[str]) -> None:
    """Compare these networks, too, once their features are there."""
    with db.writing():
        db.set_setting(WANTED, list(dict.fromkeys([*wanted(db), *names])))


def forget(db: Database, name: str) -> None:
    """Do not compare this network, or no longer."""
    with db.writing():
        db.set_setting(WANTED, [other for other in wanted(db) if other != name])


def speeds_wanted(db: Database) -> list[str]:
    """Networks of which somebody wants to know how fast they are on this machine
    (store/networks/machine_settings.py)."""
    return _names(db, SPEEDS)


def want_speed(db: Database, name: str, wanted: bool = True) -> None:
    """Measure this network, too, when the worker is free; or no longer."""
    with db.writing():
        others = [other for other in speeds_wanted(db) if other != name]
        db.set_setting(SPEEDS, [*others, name] if wanted else others)


def note(db: Database, compared: Compared) -> None:
    """Keep how a network compares; it is not wanted any more."""
    with db.writing():
        db.set_setting(COMPARED, _stored(db) | {compared.name: asdict(compared)})
        forget(db, compared.name)


def compared(db: Database) -> list[Compared]:
    """All that were compared, the oldest first; what cannot be read is left out."""
    found: list[Compared] = []
    for facts in _stored(db).values():
        try:
            found.append(Compared(**{field.name: facts[field.name] for field in fields(Compared)}))
        except (KeyError, TypeError):
            continue
    return sorted(found, key=lambda one: one.at)


def remove(db: Database, name: str) -> bool:
    """Delete the features and the map of a network, and how it compares; whether there were any. The weights stay.

    Raises:
        AnnotatorError: For the network in use, and the one that is used next.
    """
    if name in (configuration.backbone(db), adapted.next_backbone(db)):
        raise AnnotatorError(f"{name} is in use. Use another network first: annotator backbone PROJECT --use NAME")
    with db.writing():
        was_known = name in _stored(db) or name in wanted(db)
        db.set_setting(COMPARED, {other: facts for other, facts in _stored(db).items() if other != name})
        forget(db, name)
    for place in (db.paths.features(name), db.paths.map(name)):
        was_known |= place.exists()
        shutil.rmtree(place, ignore_errors=True)
    return was_known


def _names(db: Database, setting: str) -> list[str]:
    stored = db.setting(setting, [])
    return [str(name) for name in cast(list[Any], stored)] if isinstance(stored, list) else []


def _stored(db: Database) -> dict[str, Any]:
    stored = db.setting(COMPARED, {})
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}
