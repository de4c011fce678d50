"""The seven kinds of country, what each looks like and what is met there."""

from dataclasses import dataclass

from paint import Color


@dataclass(frozen=True)
class Biome:
    """water is the range of depths under water, or None; chances say how likely each class is here."""

    name: str
    seasons: tuple[str, ...]
    near: Color
    far: Color
    hill: Color
    water: tuple[float, float] | None
    chances: dict[str, float]
    props: tuple[str, ...]


BIOMES = (
    Biome(
        "meadow",
        ("summer", "spring"),
        (92, 142, 56),
        (170, 190, 104),
        (104, 150, 96),
        None,
        {
            "tree": 6,
            "house": 2,
            "windmill": 3,
            "balloon": 4,
            "sheep": 7,
            "flower": 5,
            "mushroom": 2,
            "fence": 4,
            "tractor": 2,
            "duck": 1,
        },
        ("rock",),
    ),
    Biome(
        "lake",
        ("summer", "spring", "autumn"),
        (98, 136, 66),
        (150, 172, 104),
        (92, 134, 110),
        (0.15, 0.6),
        {
            "tree": 5,
            "house": 3,
            "windmill": 2,
            "lighthouse": 3,
            "boat": 6,
            "balloon": 2,
            "sheep": 1,
            "duck": 7,
            "flower": 3,
            "mushroom": 2,
            "fence": 2,
        },
        ("reeds", "reeds", "rock"),
    ),
    Biome(
        "village",
        ("summer", "spring", "autumn"),
        (112, 142, 74),
        (166, 178, 112),
        (124, 152, 108),
        None,
        {
            "tree": 4,
            "house": 9,
            "windmill": 1,
            "balloon": 2,
            "sheep": 2,
            "flower": 3,
            "fence": 4,
            "tractor": 3,
            "duck": 3,
        },
        ("rock", "bale"),
    ),
    Biome(
        "snow",
        ("winter",),
        (236, 241, 248),
        (214, 224, 238),
        (188, 204, 222),
        None,
        {"tree": 7, "house": 5, "windmill": 2, "balloon": 2, "sheep": 3, "fence": 5, "tractor": 3},
        ("snowman", "rock"),
    ),
    Biome(
        "coast",
        ("summer",),
        (226, 204, 158),
        (206, 184, 136),
        (128, 152, 156),
        (0.0, 0.5),
        {"boat": 7, "lighthouse": 12, "balloon": 3, "house": 1, "fence": 4, "duck": 3},
        ("parasol", "rock"),
    ),
    Biome(
        "autumn",
        ("autumn",),
        (150, 104, 52),
        (184, 152, 88),
        (160, 128, 84),
        None,
        {"tree": 7, "mushroom": 10, "fence": 3, "house": 2, "sheep": 3, "tractor": 2, "duck": 1},
        ("rock", "bale"),
    ),
    Biome(
        "field",
        ("summer",),
        (206, 166, 70),
        (224, 196, 116),
        (132, 158, 96),
        None,
        {"tree": 3, "house": 2, "windmill": 5, "balloon": 3, "flower": 6, "fence": 2, "tractor": 6},
        ("bale",),
    ),
)
BIOME_CHANCES = (0.2, 0.18, 0.13, 0.12, 0.17, 0.11, 0.09)
