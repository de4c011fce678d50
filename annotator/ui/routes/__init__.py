"""The routes behind the components, one file a kind of answer, and those for programs.

Every one checks a token, but that which says whether the server is ready. They hold no rules: what comes next is asked
of the queues. What touches the disk runs in a thread, because a synchronous call in an async route would stall every
browser. Begin with guard.py.
"""

from annotator.ui.routes import (
    autopilot,
    classes,
    decide,
    downloads,
    gallery,
    history,
    map,
    metrics,
    pictures,
    predictions,
    speed_test,
    uploads,
    work,
)

ROUTES = [
    *work.ROUTES,
    *autopilot.ROUTES,
    *classes.ROUTES,
    *decide.ROUTES,
    *downloads.ROUTES,
    *gallery.ROUTES,
    *history.ROUTES,
    *map.ROUTES,
    *metrics.ROUTES,
    *pictures.ROUTES,
    *predictions.ROUTES,
    *speed_test.ROUTES,
    *uploads.ROUTES,
]
