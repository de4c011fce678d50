"""Map: every image a point in a plane, alike ones together. Everything quick happens in components/map/map.js."""

from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import empty, frame


def page() -> None:
    """Draw the page; it decides nothing and asks for no work."""
    frame.annotator_name()
    if not empty.shown(context.db(), needs_classes=False):
        mount("map")
