"""Map: every image a point in a plane, alike ones together. Everything quick happens in components/map/map.js."""

from annotator.store import classes
from annotator.ui import context, frame
from annotator.ui.components import component


def page() -> None:
    """The page; it decides nothing and asks for no work."""
    frame.annotator_name()
    known = classes.all_classes(context.db())
    component("map")(
        data={"token": frame.token(), "classes": [{"id": one.id, "name": one.name} for one in known]},
        key="map",
        on_expired_change=lambda: None,
    )
