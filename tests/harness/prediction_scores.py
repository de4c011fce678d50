"""Scores of imported predictions, by source."""

import numpy as np

from annotator.store.classes import classes
from annotator.store.runs import prediction_sources


def ids(db):
    return dict(db.tuples("SELECT name, id FROM image")), {one.name: one.id for one in classes.load_active_classes(db)}


def said_of(db, image, class_name):
    """Source -> what it says of a cell, without those that say nothing."""
    images, named = ids(db)
    answers = prediction_sources.load_cell_scores(db, [images[image]], [named[class_name]])
    return {source.name: round(float(value), 3) for source, (value,) in answers if not np.isnan(value)}
