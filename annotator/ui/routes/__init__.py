"""The HTTP routes of components and programs. Begin with guard.py.

Disk access runs in threads, because blocking an async route stalls every browser.
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
