"""The strong view of LAGC: a patch cut out, two random operations, other colours, sometimes grey.

torchvision's transforms draw from torch's global generator, which loader threads share, so no seed would reproduce the
views. Here every view has a random generator of its own, and torchvision's functions do the computation.

Xie et al., "Label-Aware Global Consistency for Multi-Label Learning with Single Positive Labels", NeurIPS 2022, and
the published code, which adds the colours and the grey. RandAugment: Cubuk et al., NeurIPS 2020, in torchvision's
form (two operations of strength 9 of 30).
"""

import math
from random import Random
from typing import Any

from PIL import Image, ImageDraw
from torchvision.transforms.v2 import functional

CUTOUT = 0.5  # the sides of the patch, as shares of the picture's
OPERATIONS, STRENGTH, STRONGEST = 2, 9, 30
JITTER, HUE, JITTER_OFTEN, GREY_OFTEN = 0.4, 0.1, 0.8, 0.2

tv: Any = functional  # takes pictures as well as tensors; its hints name tensors only

# Operations that depend on the strength: name -> (value at STRONGEST, whether its sign is random).
GROWING = {
    "ShearX": (0.3, True),
    "ShearY": (0.3, True),
    "TranslateX": (150 / 331, True),  # of the width
    "TranslateY": (150 / 331, True),  # of the height
    "Rotate": (30.0, True),
    "Brightness": (0.9, True),
    "Color": (0.9, True),
    "Contrast": (0.9, True),
    "Sharpness": (0.9, True),
    "Posterize": (4, False),
    "Solarize": (1.0, False),
}
NAMES = ("Identity", *GROWING, "AutoContrast", "Equalize")


def strong_view(picture: Image.Image, random: Random) -> Image.Image:
    """Return a strongly augmented copy of a picture (RGB); all randomness comes from `random`."""
    picture = rand_augment(cutout(picture, random), random)
    if random.random() < JITTER_OFTEN:
        picture = colour_jitter(picture, random)
    return tv.rgb_to_grayscale(picture, 3) if random.random() < GREY_OFTEN else picture


def cutout(picture: Image.Image, random: Random) -> Image.Image:
    """Return a copy with a rectangle of a random colour, half as wide and high, around a random point."""
    width, height = picture.size
    across, down = int(CUTOUT * width + 0.5), int(CUTOUT * height + 0.5)
    x, y = random.randrange(width), random.randrange(height)
    left, top = max(x - across // 2, 0), max(y - down // 2, 0)
    right, bottom = min(x + across // 2, width), min(y + down // 2, height)
    cut = picture.copy()
    colour = tuple(random.randrange(256) for _ in range(3))
    ImageDraw.Draw(cut).rectangle((left, top, max(right, left), max(bottom, top)), fill=colour)
    return cut


def rand_augment(picture: Image.Image, random: Random) -> Image.Image:
    """Apply two random operations of NAMES, at strength STRENGTH of STRONGEST."""
    for _ in range(OPERATIONS):
        name = random.choice(NAMES)
        value = 0.0
        if name in GROWING:
            most, either_way = GROWING[name]
            value = most * STRENGTH / STRONGEST
            if either_way and random.random() < 0.5:
                value = -value
        picture = apply(picture, name, value)
    return picture


def apply(picture: Image.Image, name: str, value: float) -> Image.Image:
    """Apply one operation of NAMES; `value` as GROWING scales it, ignored by operations without one."""
    width, height = picture.size
    if name in ("ShearX", "ShearY"):
        angle = math.degrees(math.atan(value))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        return tv.affine(picture, angle=0.0, translate=[0, 0], scale=1.0, shear=shear, center=[0, 0])
    if name in ("TranslateX", "TranslateY"):
        move = [int(value * width), 0] if name == "TranslateX" else [0, int(value * height)]
        return tv.affine(picture, angle=0.0, translate=move, scale=1.0, shear=[0.0, 0.0])
    if name == "Rotate":
        return tv.rotate(picture, value)
    if name == "Posterize":
        return tv.posterize(picture, 8 - round(value))
    if name == "Solarize":
        return tv.solarize(picture, 255 * (1 - value))
    if name in ("AutoContrast", "Equalize"):
        return tv.autocontrast(picture) if name == "AutoContrast" else tv.equalize(picture)
    turned = {
        "Brightness": tv.adjust_brightness,
        "Color": tv.adjust_saturation,
        "Contrast": tv.adjust_contrast,
        "Sharpness": tv.adjust_sharpness,
    }
    return turned[name](picture, 1 + value) if name in turned else picture


def colour_jitter(picture: Image.Image, random: Random) -> Image.Image:
    """Return a copy with brightness, contrast and saturation times 0.6 to 1.4, hue shifted by up to 0.1."""
    steps = [
        (tv.adjust_brightness, random.uniform(1 - JITTER, 1 + JITTER)),
        (tv.adjust_contrast, random.uniform(1 - JITTER, 1 + JITTER)),
        (tv.adjust_saturation, random.uniform(1 - JITTER, 1 + JITTER)),
        (tv.adjust_hue, random.uniform(-HUE, HUE)),
    ]
    random.shuffle(steps)
    for change, amount in steps:
        picture = change(picture, amount)
    return picture
