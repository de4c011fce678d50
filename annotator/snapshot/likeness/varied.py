"""A varied few of the images that a listing shows first, for a grid: where nobody knows an example of a class.

The images most like words or a picture are often much alike, and all wrong for one reason. So of the likest CANDIDATES
the first LIKEST are taken, and then one by one the image farthest from all taken so far (k-center; Gonzalez 1985).
"""

from collections.abc import Sequence

import numpy as np

from annotator.snapshot.likeness import similar
from annotator.store.database.database import Database

CANDIDATES, LIKEST, TAKEN = 480, 24, 96


def varied(db: Database, image_ids: Sequence[int]) -> list[int]:
    """Return at most TAKEN of these images, the LIKEST first ones and then the most different ones.

    Args:
        db: The project's database.
        image_ids: At most CANDIDATES, the likest first.
    """
    ids, vectors = similar.vectors(db, image_ids)
    if len(ids) <= TAKEN:
        return list(image_ids[:TAKEN])
    chosen = list(range(LIKEST))
    nearest = (vectors @ vectors[:LIKEST].T).max(1)  # cosine with the likest of those taken
    nearest[:LIKEST] = np.inf
    while len(chosen) < TAKEN:
        place = int(nearest.argmin())
        chosen.append(place)
        np.maximum(nearest, vectors @ vectors[place], out=nearest)
        nearest[place] = np.inf
    return ids[chosen].tolist()
