"""The last export that each person has ordered, kept in the project: the next one like it is one press away."""

from dataclasses import replace
from itertools import count
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.formats import find_format
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.ui.export.running import Order, exporting, place_of


def start(db: Database, order: Order) -> None:
    """Begin an export and keep its choices for the next time. Raises as Exporting.start."""
    exporting(db).start(order)
    kept: dict[str, Any] = {"kind": order.kind, "name": order.name, "on_server": order.on_server, "lossy": order.lossy}
    # The images are kept beside the choices, whose JSON leaves "none" out.
    kept |= {"choices": order.choices.as_json(), "images": order.choices.images}
    db.set_setting(_key(order.by), kept, Right.REVIEW)


def of(db: Database, by: str) -> Order | None:
    """Return the order of this person's next export: as the last one, without its tag, under a name that is free.

    None before the first one, and where this version cannot read what was kept.
    """
    kept = db.setting(_key(by))
    try:
        find_format(kept["kind"], "write")
        choices = replace(Choices.from_json(kept["choices"]), images=kept["images"])
        order = Order(kept["kind"], choices, kept["name"], kept["on_server"], by=by, lossy=kept["lossy"])
    except (AnnotatorError, AttributeError, KeyError, TypeError, ValueError):
        return None
    if not order.on_server:
        return order
    names = (order.name if number == 1 else f"{order.name} {number}" for number in count(1))
    return next(named for named in (replace(order, name=name) for name in names) if not place_of(db, named).exists())


def _key(by: str) -> str:
    return f"last_export:{by}"
