"""Annotate: one image, one key, the next image. Everything quick happens in components/annotate/annotate.js."""

from annotator.queues import query_order
from annotator.store import classes
from annotator.ui import class_adding, context, frame
from annotator.ui.components import mount
from annotator.ui.pages.class_form import first_form


def page() -> None:
    """The page; without classes, a form to name them."""
    frame.annotator_name()
    if not classes.all_classes(context.db()):
        first_form()
        return
    db = context.db()
    choices = [
        {"name": order.name, "title": order.title, "about": order.about} for order in query_order.QUERY_ORDERS.values()
    ]
    mount("annotate", orders=choices, order=query_order.chosen(db), adds_classes=class_adding.is_allowed(db))
