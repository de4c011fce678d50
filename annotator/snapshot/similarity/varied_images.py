"""A varied sample of the first images of a listing, for classes without a known example.

The most similar images are often wrong for one reason, so the sample adds those farthest from the first LIKEST_IMAGES
(k-center, Gonzalez 1985).
"""

from collections.abc import Sequence

import numpy as np

from annotator.snapshot.similarity import image_similarity
from annotator.store.database.database import Database

MAX_CANDIDATES, LIKEST_IMAGES, SAMPLE_IMAGES = 480, 24, 96


def select_varied(db: Database, image_ids: Sequence[int]) -> list[int]:
    """Return the first LIKEST_IMAGES images, then those that differ most from them, at most SAMPLE_IMAGES in all."""
    ids, vectors = image_similarity.load_directions(db, image_ids)
    if len(ids) <= SAMPLE_IMAGES:
        return list(image_ids[:SAMPLE_IMAGES])
    chosen = list(range(LIKEST_IMAGES))
    nearest = (vectors @ vectors[:LIKEST_IMAGES].T).max(1)  # cosine with the likest of those taken
    nearest[:LIKEST_IMAGES] = np.inf
    while len(chosen) < SAMPLE_IMAGES:
        place = int(nearest.argmin())
        chosen.append(place)
        np.maximum(nearest, vectors @ vectors[place], out=nearest)
        nearest[place] = np.inf
    return ids[chosen].tolist()
