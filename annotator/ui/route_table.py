"""The table of all routes that server.py serves."""

from annotator.ui.pages.autopilot import autopilot_routes
from annotator.ui.pages.classes import classes_routes
from annotator.ui.pages.export import exports_routes
from annotator.ui.pages.gallery import gallery_routes, like_routes
from annotator.ui.pages.imports import uploads_routes
from annotator.ui.pages.map import map_routes
from annotator.ui.pages.speed_test import speed_test_routes
from annotator.ui.routes import (
    answering_routes,
    decide_routes,
    downloads_routes,
    history_routes,
    metrics_routes,
    pictures_routes,
    predictions_routes,
    related_routes,
    work_routes,
)

ROUTES = [
    *work_routes.ROUTES,
    *answering_routes.ROUTES,
    *autopilot_routes.ROUTES,
    *classes_routes.ROUTES,
    *decide_routes.ROUTES,
    *downloads_routes.ROUTES,
    *exports_routes.ROUTES,
    *gallery_routes.ROUTES,
    *history_routes.ROUTES,
    *like_routes.ROUTES,
    *map_routes.ROUTES,
    *metrics_routes.ROUTES,
    *pictures_routes.ROUTES,
    *predictions_routes.ROUTES,
    *related_routes.ROUTES,
    *speed_test_routes.ROUTES,
    *uploads_routes.ROUTES,
]
