"""Generated pedestrians with clothing: 28 classes, five to six per image, very uneven frequency.

A person wears at most one item per clothing group, so classes exclude and occlude each other.
"""

import numpy as np
from PIL import Image

from annotator.benchmark.collections.shapes import Shape, draw_shapes, pick_random_color
from annotator.benchmark.collections.small_objects import IMAGE_SIDE_PIXELS, draw_ground

SLEEVE_SHAPES: tuple[Shape, ...] = (("box", (0.28, 0.23, 0.36, 0.52), 0), ("box", (0.64, 0.23, 0.72, 0.52), 0))
TORSO_SHAPE: Shape = ("polygon", (0.36, 0.22, 0.64, 0.22, 0.62, 0.56, 0.38, 0.56), 0)
BODY_SHAPES: tuple[Shape, ...] = (
    ("box", (0.4, 0.5, 0.48, 0.95), 0),
    ("box", (0.52, 0.5, 0.6, 0.95), 0),
    ("box", (0.29, 0.24, 0.35, 0.56), 0),
    ("box", (0.65, 0.24, 0.71, 0.56), 0),
    TORSO_SHAPE,
    ("box", (0.46, 0.17, 0.54, 0.24), 0),
    ("top", (0.4, 0.01, 0.6, 0.19), 1),
    ("oval", (0.42, 0.03, 0.58, 0.2), 0),
)
# Colours: 0 of the thing, 1 light, 2 dark, 3 the first one darker.
CLOTHING_SHAPES: dict[str, tuple[Shape, ...]] = {
    "trousers": (("box", (0.38, 0.54, 0.49, 0.93), 0), ("box", (0.51, 0.54, 0.62, 0.93), 0)),
    "skirt": (("polygon", (0.39, 0.54, 0.61, 0.54, 0.7, 0.76, 0.3, 0.76), 0),),
    "shorts": (("box", (0.37, 0.54, 0.49, 0.68), 0), ("box", (0.51, 0.54, 0.63, 0.68), 0)),
    "sneakers": (
        ("box", (0.36, 0.93, 0.49, 0.97), 0), ("box", (0.51, 0.93, 0.64, 0.97), 0),
        ("box", (0.36, 0.965, 0.49, 0.98), 1), ("box", (0.51, 0.965, 0.64, 0.98), 1),
    ),
    "boots": (("box", (0.37, 0.82, 0.49, 0.98), 0), ("box", (0.51, 0.82, 0.63, 0.98), 0)),
    "heels": (
        ("polygon", (0.38, 0.92, 0.48, 0.92, 0.48, 0.98, 0.46, 0.95, 0.36, 0.97), 0),
        ("polygon", (0.52, 0.92, 0.62, 0.92, 0.64, 0.97, 0.54, 0.95, 0.52, 0.98), 0),
    ),
    "t-shirt": (TORSO_SHAPE, ("box", (0.28, 0.23, 0.36, 0.34), 0), ("box", (0.64, 0.23, 0.72, 0.34), 0)),
    "shirt": (
        TORSO_SHAPE, *SLEEVE_SHAPES, ("box", (0.495, 0.24, 0.505, 0.56), 3),
        ("polygon", (0.43, 0.21, 0.5, 0.28, 0.57, 0.21), 1),
    ),
    "sweater": (
        TORSO_SHAPE, *SLEEVE_SHAPES,
        *(("box", (0.36, y, 0.64, y + 0.025), 3) for y in (0.28, 0.35, 0.42, 0.49)),
    ),
    "dress": (("polygon", (0.38, 0.22, 0.62, 0.22, 0.59, 0.42, 0.73, 0.8, 0.27, 0.8, 0.41, 0.42), 0),),
    "belt": (("box", (0.38, 0.53, 0.62, 0.56), 2), ("box", (0.48, 0.525, 0.52, 0.565), 1)),
    "jacket": (
        *SLEEVE_SHAPES, ("box", (0.34, 0.21, 0.45, 0.58), 0), ("box", (0.55, 0.21, 0.66, 0.58), 0),
        ("polygon", (0.4, 0.21, 0.45, 0.21, 0.45, 0.36), 3), ("polygon", (0.6, 0.21, 0.55, 0.21, 0.55, 0.36), 3),
    ),
    "coat": (
        *SLEEVE_SHAPES, ("polygon", (0.33, 0.21, 0.46, 0.21, 0.46, 0.8, 0.28, 0.8), 0),
        ("polygon", (0.67, 0.21, 0.54, 0.21, 0.54, 0.8, 0.72, 0.8), 0),
    ),
    "vest": (("polygon", (0.37, 0.22, 0.44, 0.22, 0.49, 0.5, 0.37, 0.55), 2),
             ("polygon", (0.63, 0.22, 0.56, 0.22, 0.51, 0.5, 0.63, 0.55), 2)),
    "scarf": (("box", (0.42, 0.19, 0.58, 0.25), 0), ("box", (0.44, 0.24, 0.49, 0.42), 0)),
    "necklace": (("arc", (0.43, 0.15, 0.57, 0.31), 1), ("oval", (0.485, 0.29, 0.515, 0.33), 1)),
    "tie": (("polygon", (0.48, 0.22, 0.52, 0.22, 0.53, 0.44, 0.5, 0.48, 0.47, 0.44), 0),),
    "glasses": (
        ("line", (0.43, 0.1, 0.49, 0.1, 0.49, 0.13, 0.44, 0.13, 0.43, 0.1), 2),
        ("line", (0.51, 0.1, 0.57, 0.1, 0.56, 0.13, 0.51, 0.13, 0.51, 0.1), 2),
        ("line", (0.49, 0.11, 0.51, 0.11), 2),
    ),
    "sunglasses": (("oval", (0.425, 0.095, 0.495, 0.14), 2), ("oval", (0.505, 0.095, 0.575, 0.14), 2)),
    "cap": (("top", (0.41, 0.0, 0.59, 0.15), 0), ("box", (0.55, 0.06, 0.68, 0.08), 3)),
    "hat": (("box", (0.43, -0.02, 0.57, 0.06), 0), ("box", (0.34, 0.05, 0.66, 0.075), 0),
            ("box", (0.43, 0.03, 0.57, 0.05), 3)),
    "beanie": (("top", (0.4, -0.02, 0.6, 0.17), 0), ("oval", (0.47, -0.05, 0.53, 0.0), 1)),
    "watch": (("box", (0.64, 0.49, 0.72, 0.51), 2), ("oval", (0.66, 0.485, 0.7, 0.515), 1)),
    "gloves": (("oval", (0.275, 0.52, 0.365, 0.6), 0), ("oval", (0.635, 0.52, 0.725, 0.6), 0)),
    "handbag": (("line", (0.71, 0.61, 0.74, 0.52, 0.8, 0.52, 0.83, 0.61), 2), ("box", (0.68, 0.6, 0.86, 0.74), 0),
                ("box", (0.75, 0.6, 0.79, 0.63), 1)),
    "backpack": (("box", (0.36, 0.22, 0.4, 0.45), 3), ("box", (0.6, 0.22, 0.64, 0.45), 3),
                 ("oval", (0.2, 0.2, 0.37, 0.52), 0)),
    "umbrella": (("top", (0.55, -0.03, 1.0, 0.3), 0), ("box", (0.765, 0.13, 0.775, 0.56), 2)),
    "suitcase": (("box", (0.05, 0.72, 0.27, 0.96), 0), ("box", (0.05, 0.78, 0.27, 0.8), 3),
                 ("line", (0.12, 0.72, 0.12, 0.6, 0.2, 0.6, 0.2, 0.72), 2)),
}  # fmt: skip
# Groups in the order in which they are put on: the chance of wearing one, and how often each is the one.
CLOTHING_GROUPS: tuple[tuple[float, dict[str, float]], ...] = (
    (1.0, {"sneakers": 0.5, "boots": 0.3, "heels": 0.2}),
    (0.85, {"trousers": 0.6, "skirt": 0.25, "shorts": 0.15}),
    (1.0, {"t-shirt": 0.37, "shirt": 0.33, "sweater": 0.17, "dress": 0.13}),
    (0.2, {"belt": 1.0}),
    (0.6, {"jacket": 0.6, "coat": 0.3, "vest": 0.1}),
    (0.4, {"scarf": 0.5, "necklace": 0.35, "tie": 0.15}),
    (0.3, {"glasses": 0.7, "sunglasses": 0.3}),
    (0.4, {"cap": 0.5, "hat": 0.35, "beanie": 0.15}),
    (0.15, {"watch": 0.75, "gloves": 0.25}),
    (0.6, {"handbag": 0.45, "backpack": 0.35, "umbrella": 0.12, "suitcase": 0.08}),
)


def draw_street_person(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw a person and return the image with worn and carried items."""
    image = draw_ground(rng)
    height = float(rng.uniform(300, 450))
    frame = (
        float(rng.uniform(-0.15, IMAGE_SIDE_PIXELS - 0.85 * height)),
        float(rng.uniform(10, IMAGE_SIDE_PIXELS - height)),
        height,
        height,
    )
    skin = (int(rng.integers(120, 245)), int(rng.integers(90, 190)), int(rng.integers(70, 160)))
    draw_shapes(image, BODY_SHAPES, frame, (skin, pick_random_color(rng, 10, 150)))
    worn: list[str] = []
    for chance, group in CLOTHING_GROUPS:
        if rng.random() < chance:
            name = str(rng.choice(list(group), p=list(group.values())))
            if name == "dress":  # instead of what was put on below
                worn = [other for other in worn if other not in ("trousers", "skirt", "shorts")]
            worn.append(name)
    for name in worn:
        body = pick_random_color(rng)
        light, dark = pick_random_color(rng, 215, 256), (25, 25, 30)
        draw_shapes(
            image, CLOTHING_SHAPES[name], frame, (body, light, dark, (body[0] // 2, body[1] // 2, body[2] // 2))
        )
    return image, worn
