"""The routes behind the components, one file a kind of answer, and those for programs.

Every route checks a token, except the one that says whether the server is ready. Routes hold no rules: the queues
decide what comes next. Work that touches the disk runs in a thread, because a synchronous call in an async route would
stall every browser. Begin with guard.py.
"""

from annotator.ui.routes import (
    answering,
    autopilot,
    classes,
    decide,
    downloads,
    exports,
    gallery,
    history,
    like,
    map,
    metrics,
    pictures,
    predictions,
    related,
    speed_test,
    uploads,
    work,
)

ROUTES = [
    *work.ROUTES,
    *answering.ROUTES,
    *autopilot.ROUTES,
    *classes.ROUTES,
    *decide.ROUTES,
    *downloads.ROUTES,
    *exports.ROUTES,
    *gallery.ROUTES,
    *history.ROUTES,
    *like.ROUTES,
    *map.ROUTES,
    *metrics.ROUTES,
    *pictures.ROUTES,
    *predictions.ROUTES,
    *related.ROUTES,
    *speed_test.ROUTES,
    *uploads.ROUTES,
]
