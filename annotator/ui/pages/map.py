"""Map: every image a point in a plane, alike ones together. Everything quick happens in components/map/map.js."""

from annotator.store import classes
from annotator.ui import context, frame
from annotator.ui.components import mount


def page() -> None:
    """The page; it decides nothing and asks for no work."""
    frame.annotator_name()
    known = classes.all_classes(context.db())
    mount("map", known)
