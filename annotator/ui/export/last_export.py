"""The last export that each person has ordered, kept in the project: the next one like it is one press away."""

from dataclasses import replace
from itertools import count
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.formats import find_format
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.ui.export.export_runner import ExportRequest, get_export_folder, get_export_runner


def start_and_save(db: Database, order: ExportRequest) -> None:
    """Begin an export and keep its choices for the next time. Raises as Exporting.start."""
    get_export_runner(db).start(order)
    kept: dict[str, Any] = {"kind": order.kind, "name": order.name, "on_server": order.on_server, "lossy": order.lossy}
    # The images are kept beside the choices, whose JSON leaves "none" out.
    kept |= {"choices": order.choices.as_json(), "images": order.choices.images}
    db.set_setting(_get_setting_name(order.by), kept, Right.REVIEW)


def load_next(db: Database, by: str) -> ExportRequest | None:
    """Return the order of this person's next export: as the last one, without its tag, under a name that is free.

    None before the first one, and where this version cannot read what was kept.
    """
    kept = db.get_setting(_get_setting_name(by))
    try:
        find_format(kept["kind"], "write")
        choices = replace(Choices.from_json(kept["choices"]), images=kept["images"])
        order = ExportRequest(kept["kind"], choices, kept["name"], kept["on_server"], by=by, lossy=kept["lossy"])
    except (AnnotatorError, AttributeError, KeyError, TypeError, ValueError):
        return None
    if not order.on_server:
        return order
    names = (order.name if number == 1 else f"{order.name} {number}" for number in count(1))
    return next(
        named for named in (replace(order, name=name) for name in names) if not get_export_folder(db, named).exists()
    )


def _get_setting_name(by: str) -> str:
    return f"last_export:{by}"
