"""Each person's last export, stored for one-click repetition."""

from dataclasses import replace
from itertools import count
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.formats import find_format
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.ui.shared.work.export_runner import ExportRequest, get_export_folder, get_export_runner


def start_and_save(db: Database, order: ExportRequest) -> None:
    get_export_runner(db).start(order)
    kept: dict[str, Any] = {"kind": order.kind, "name": order.name, "on_server": order.on_server, "lossy": order.lossy}
    # The images are kept beside the choices, whose JSON leaves "none" out.
    kept |= {"choices": order.choices.as_json(), "images": order.choices.images}
    db.set_setting(_get_setting_name(order.by), kept, Right.REVIEW)


def load_next(db: Database, by: str) -> ExportRequest | None:
    """Return the person's last export with an unused name and no tag, or None if missing or unreadable."""
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
