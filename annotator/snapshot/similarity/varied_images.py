"""A varied few of the images that a listing shows first, for a grid: where nobody knows an example of a class.

The images most like words or a picture are often much alike, and all wrong for one reason. So of the likest
MAX_CANDIDATES
the first LIKEST_IMAGES are taken, and then one by one the image farthest from all taken so far (k-center; Gonzalez
1985).
"""

from collections.abc import Sequence

import numpy as np

from annotator.snapshot.similarity import image_similarity
from annotator.store.database.database import Database

MAX_CANDIDATES, LIKEST_IMAGES, SAMPLE_IMAGES = 480, 24, 96


def select_varied(db: Database, image_ids: Sequence[int]) -> list[int]:
    """Return at most SAMPLE_IMAGES of these images, the LIKEST_IMAGES first ones and then the most different ones.

    Args:
        db: The project's database.
        image_ids: At most MAX_CANDIDATES, the likest first.
    """
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
