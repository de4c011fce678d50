"""The strong view of LAGC: cutout, two random operations, color jitter, sometimes gray.

Each view has its own generator, because loader threads would share a global one. Xie et al., NeurIPS 2022, with
RandAugment (Cubuk et al., NeurIPS 2020) as in `randaugment` 1.0.2.
"""

from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any

from PIL import Image, ImageEnhance, ImageOps
from torchvision.transforms.v2 import functional

CUTOUT_SIDE_SHARE = 0.5  # the sides of the patch, as shares of the picture's
# operations that are drawn, and how often a drawn one is carried out
OPERATIONS_PER_VIEW, OPERATION_PROBABILITY = (2, 0.5)
MAGNITUDES = range(1, 10)  # in ninths of the strongest form of an operation
MAX_SHEAR, MAX_TRANSLATION, MAX_ROTATION_DEGREES, MAX_ENHANCEMENT = 0.3, 150 / 331, 30.0, 0.9
FILL_COLOR = (128, 128, 128)  # where an operation moves in what the picture does not have
# the largest patch of the operation Cutout, in pixels, and its colour
MAX_PATCH_PIXELS, PATCH_COLOR = (20, (125, 122, 113))
JITTER_STRENGTH, MAX_HUE_SHIFT, JITTER_PROBABILITY, GRAY_PROBABILITY = 0.4, 0.1, 0.8, 0.2

tv: Any = functional  # takes pictures as well as tensors; its hints name tensors only

Operation = Callable[[Image.Image, float, Random], Image.Image]  # picture, magnitude in [0, 1], its randomness


def make_strong_view(picture: Image.Image, random: Random) -> Image.Image:
    """Return a strongly augmented copy of an RGB image. Only `random` decides what is changed."""
    picture = rand_augment(cutout(picture, random), random)
    if random.random() < JITTER_PROBABILITY:
        picture = color_jitter(picture, random)
    return tv.rgb_to_grayscale(picture, 3) if random.random() < GRAY_PROBABILITY else picture


def cutout(picture: Image.Image, random: Random) -> Image.Image:
    """Cover a half-size rectangle in a random color."""
    width, height = picture.size
    half = int(CUTOUT_SIDE_SHARE * width + 0.5) // 2, int(CUTOUT_SIDE_SHARE * height + 0.5) // 2
    colour = (random.randrange(256), random.randrange(256), random.randrange(256))
    return _cover_rectangle(picture, half, colour, random, edge=1)


def rand_augment(picture: Image.Image, random: Random) -> Image.Image:
    """Draw two operations and apply each with probability 1/2."""
    for _ in range(OPERATIONS_PER_VIEW):
        name, magnitude = random.choice(OPERATION_NAMES), random.choice(MAGNITUDES)
        if random.random() < OPERATION_PROBABILITY:
            picture = OPERATIONS[name](picture, magnitude / 9, random)
    return picture


def color_jitter(picture: Image.Image, random: Random) -> Image.Image:
    """Change brightness, contrast and saturation by random factors from 0.6 to 1.4, and hue by up to 0.1."""
    steps = [
        (tv.adjust_brightness, random.uniform(1 - JITTER_STRENGTH, 1 + JITTER_STRENGTH)),
        (tv.adjust_contrast, random.uniform(1 - JITTER_STRENGTH, 1 + JITTER_STRENGTH)),
        (tv.adjust_saturation, random.uniform(1 - JITTER_STRENGTH, 1 + JITTER_STRENGTH)),
        (tv.adjust_hue, random.uniform(-MAX_HUE_SHIFT, MAX_HUE_SHIFT)),
    ]
    random.shuffle(steps)
    for change, amount in steps:
        picture = change(picture, amount)
    return picture


def _cover_rectangle(
    picture: Image.Image, half: tuple[int, int], colour: tuple[int, int, int], random: Random, edge: int
) -> Image.Image:
    """Cover a rectangle around a random point with a color. `edge` 1 includes the last row and column."""
    width, height = picture.size
    x, y = random.randrange(width), random.randrange(height)
    corner = min(x + half[0] + edge, width), min(y + half[1] + edge, height)
    covered = picture.copy()
    covered.paste(colour, (max(x - half[0], 0), max(y - half[1], 0), *corner))
    return covered


def _draw_sign(random: Random) -> int:
    return random.choice((-1, 1))


def _transform_affine(picture: Image.Image, matrix: tuple, resample: Image.Resampling) -> Image.Image:
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample, fillcolor=FILL_COLOR)


def _shear_x(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
    shear = MAX_SHEAR * magnitude * _draw_sign(random)
    return _transform_affine(picture, (1, shear, 0, 0, 1, 0), Image.Resampling.BICUBIC)


def _shear_y(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
    shear = MAX_SHEAR * magnitude * _draw_sign(random)
    return _transform_affine(picture, (1, 0, 0, shear, 1, 0), Image.Resampling.BICUBIC)


def _translate_x(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
    move = MAX_TRANSLATION * magnitude * picture.width * _draw_sign(random)
    return _transform_affine(picture, (1, 0, move, 0, 1, 0), Image.Resampling.NEAREST)


def _translate_y(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
    move = MAX_TRANSLATION * magnitude * picture.height * _draw_sign(random)
    return _transform_affine(picture, (1, 0, 0, 0, 1, move), Image.Resampling.NEAREST)


def _make_enhancement(kind: Callable[[Image.Image], Any]) -> Operation:
    """Return an operation that changes a property of images (`kind`, from Pillow) by a factor of up to 0.9."""

    def enhance_picture(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
        return kind(picture).enhance(1 + MAX_ENHANCEMENT * magnitude * _draw_sign(random))

    return enhance_picture


def _cover_patch(picture: Image.Image, magnitude: float, random: Random) -> Image.Image:
    half = round(MAX_PATCH_PIXELS * magnitude) // 2
    return _cover_rectangle(picture, (half, half), PATCH_COLOR, random, edge=0)


OPERATIONS: dict[str, Operation] = {
    "ShearX": _shear_x,
    "ShearY": _shear_y,
    "TranslateX": _translate_x,
    "TranslateY": _translate_y,
    # Always counterclockwise, as in the package.
    "Rotate": lambda picture, magnitude, _: picture.rotate(MAX_ROTATION_DEGREES * magnitude, fillcolor=FILL_COLOR),
    "Color": _make_enhancement(ImageEnhance.Color),
    "Contrast": _make_enhancement(ImageEnhance.Contrast),
    "Sharpness": _make_enhancement(ImageEnhance.Sharpness),
    "Brightness": _make_enhancement(ImageEnhance.Brightness),
    "Posterize": lambda picture, magnitude, _: ImageOps.posterize(picture, round(8 - 4 * magnitude)),
    "Solarize": lambda picture, magnitude, _: ImageOps.solarize(picture, ceil(256 * (1 - magnitude))),
    "AutoContrast": lambda picture, *_: ImageOps.autocontrast(picture),
    "Equalize": lambda picture, *_: ImageOps.equalize(picture),
    "Invert": lambda picture, *_: ImageOps.invert(picture),
    "Cutout": _cover_patch,
}
OPERATION_NAMES = tuple(OPERATIONS)
