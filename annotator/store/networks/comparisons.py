"""Networks that are compared with the one in use: those still to be compared, and the stored comparisons.

Their features lie beside those of the network in use (PROJECT/features/NAME), which stay; nothing is deleted unasked.
"""

import shutil
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.networks import adapted, configuration
from annotator.store.networks.judged import Judged

WANTED, COMPARED, SPEEDS = "backbones_to_compare", "compared_backbones", "backbones_to_measure"


@dataclass(frozen=True)
class Compared(Judged):
    """A comparison of a network with the one in use, by cross-validation on this project's unbiased answers.

    Attributes:
        name, against: The network, and the one that was in use.
        at: Unix seconds.
        log_loss_low, log_loss_high: The 95 % interval of the difference in log loss.
        images, answers, classes: The numbers that they were compared on.
        error: Why they were not compared; "" when they were.
    """

    name: str
    against: str
    at: float
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
        """Return the words between the two names in a sentence, such as "is better than"."""
        if self.is_better:
            return "is better than"
        return "is worse than" if self.ap_high < 0 else "is not clearly better than"


def wanted(db: Database) -> list[str]:
    """Return the networks whose features are to be computed and compared, in this order."""
    return _names(db, WANTED)


def want(db: Database, names: list[str]) -> None:
    """Add networks to those that are to be compared."""
    with db.writing():
        db.set_setting(WANTED, list(dict.fromkeys([*wanted(db), *names])))


def forget(db: Database, name: str) -> None:
    """Remove a network from those that are to be compared."""
    with db.writing():
        db.set_setting(WANTED, [other for other in wanted(db) if other != name])


def speeds_wanted(db: Database) -> list[str]:
    """Return the networks whose speed on this machine is to be measured (store/networks/machine_settings.py)."""
    return _names(db, SPEEDS)


def want_speed(db: Database, name: str, wanted: bool = True) -> None:
    """Ask for the speed of this network, measured when the worker is free; with wanted=False, withdraw the request."""
    with db.writing():
        others = [other for other in speeds_wanted(db) if other != name]
        db.set_setting(SPEEDS, [*others, name] if wanted else others)


def note(db: Database, compared: Compared) -> None:
    """Store a comparison; its network is no longer to be compared."""
    with db.writing():
        db.set_setting(COMPARED, _stored(db) | {compared.name: asdict(compared)})
        forget(db, compared.name)


def compared(db: Database) -> list[Compared]:
    """Return all comparisons, the oldest first; those that cannot be read are left out."""
    found: list[Compared] = []
    for facts in _stored(db).values():
        try:
            found.append(Compared(**{field.name: facts[field.name] for field in fields(Compared)}))
        except (KeyError, TypeError):
            continue
    return sorted(found, key=lambda one: one.at)


def remove(db: Database, name: str) -> bool:
    """Delete the features, the map and the comparison of a network; return whether there were any. The weights stay.

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
