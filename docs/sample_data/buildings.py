"""Things people built to stay: house, windmill, lighthouse, fence."""

import itertools

import numpy as np
from paint import Color, Sprite, brick, jitter, lighter, mix, pick, planks

SNOW = (240, 245, 252)
GLASS = (92, 116, 138)
LAMP = (255, 222, 130)
WALLS = (
    (236, 226, 206),
    (226, 196, 150),
    (188, 96, 74),
    (216, 218, 214),
    (232, 182, 160),
    (176, 198, 206),
    (240, 214, 130),
)
ROOFS = ((164, 74, 56), (120, 70, 58), (88, 92, 104), (182, 98, 60), (104, 84, 70))
WOOD = ((122, 88, 60), (150, 112, 76), (132, 120, 106), (104, 74, 54))


def _window(s: Sprite, x: float, y: float, w: float, h: float, frame: Color, dark: bool) -> None:
    s.rect(x - 0.012, y - 0.012, x + w + 0.012, y + h + 0.016, frame, shade=0.05, grain=0.03)
    s.rect(x, y, x + w, y + h, LAMP if dark else GLASS, shade=0.25, grain=0.08)
    s.line([(x + w / 2, y), (x + w / 2, y + h)], 0.008, frame)
    s.line([(x, y + h / 2), (x + w, y + h / 2)], 0.008, frame)


def _shutters(s: Sprite, x: float, y: float, w: float, h: float, colour: Color) -> None:
    for left in (x - 0.055, x + w + 0.012):
        s.rect(left, y - 0.01, left + 0.042, y + h + 0.01, colour, shade=0.1, texture=planks(0.02, upright=False))


def house(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A cottage in three-quarter view: gable wall, long wall, tiled roof, chimney."""
    length = rng.uniform(0.55, 0.95)
    s = Sprite(rng, height, 0.58 + length, lit)
    wall, roof = pick(rng, WALLS), jitter(rng, pick(rng, ROOFS), 8)
    trim = pick(rng, ((246, 242, 232), (96, 72, 54), (70, 96, 84)))
    shutter = pick(rng, ((62, 104, 92), (150, 62, 54), (58, 86, 128), (118, 82, 52)))
    surface = pick(rng, (brick(0.034), None, planks(0.05, upright=False), None))
    left, corner, right = 0.06, 0.5, 0.5 + length
    ridge, eaves, mid = rng.uniform(0.12, 0.2), rng.uniform(0.46, 0.54), 0.28
    facing, turned = (1.04, 0.8) if lit < 0 else (0.84, 1.04)
    gable = [(left, 0.98), (left, eaves), (mid, ridge + 0.02), (corner, eaves), (corner, 0.99)]
    s.poly(gable, lighter(wall, facing), shade=0.06, grain=0.07, texture=surface)
    s.poly([(corner, eaves), (right, eaves), (right, 0.97), (corner, 0.99)], lighter(wall, turned), texture=surface)
    s.poly(
        [(left, 0.93), (corner, 0.94), (right, 0.92), (right, 0.97), (corner, 0.99), (left, 0.98)],
        (128, 120, 112),
        texture=brick(0.03, 1.6, 0.8),
    )
    _chimney(s, corner + length * rng.uniform(0.1, 0.5), ridge, season)
    tiles = brick(0.036, 1.3, 0.72)
    slope = [
        (mid, ridge - 0.02),
        (mid + length, ridge - 0.02),
        (right + 0.05, eaves + 0.05),
        (corner + 0.03, eaves + 0.06),
    ]
    s.poly(slope, lighter(roof, turned * 1.08), shade=0.14, texture=tiles)
    s.poly(
        [(mid, ridge - 0.03), (mid + 0.02, ridge + 0.03), (left - 0.03, eaves + 0.07), (left - 0.055, eaves + 0.03)],
        lighter(roof, facing),
    )
    s.poly(
        [(mid, ridge - 0.03), (mid - 0.01, ridge + 0.04), (corner + 0.0, eaves + 0.08), (corner + 0.035, eaves + 0.05)],
        lighter(roof, 0.72),
    )
    if season == "winter":
        s.poly([*slope[:2], (right + 0.03, eaves - 0.0), (corner + 0.01, eaves + 0.01)], SNOW, shade=0.08, grain=0.05)
    s.rect(0.22, 0.7, 0.35, 0.97, trim, grain=0.02)
    s.rect(0.235, 0.715, 0.335, 0.97, shutter, texture=planks(0.03))
    s.dot(0.32, 0.85, 0.008, 0.008, (220, 190, 110))
    _window(s, 0.235, eaves - 0.04, 0.09, 0.11, trim, dark)
    for x in np.arange(corner + 0.1, right - 0.14, 0.24):
        _window(s, float(x), 0.64, 0.1, 0.14, trim, dark)
        _shutters(s, float(x), 0.64, 0.1, 0.14, shutter)
    return s


def _chimney(s: Sprite, x: float, ridge: float, season: str) -> None:
    s.rect(x, ridge - 0.1, x + 0.09, ridge + 0.1, (156, 92, 76), shade=0.2, texture=brick(0.025))
    s.rect(x - 0.012, ridge - 0.115, x + 0.102, ridge - 0.09, SNOW if season == "winter" else (120, 84, 72))


def windmill(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A tower mill: tapered body, cap, four lattice sails at any angle."""
    s = Sprite(rng, height, 0.84, lit)
    body = pick(rng, ((236, 230, 214), (198, 150, 116), (168, 92, 72), (210, 204, 194), (128, 104, 84)))
    cap = pick(rng, ((92, 66, 54), (74, 84, 98), (150, 66, 52), (62, 92, 80)))
    surface = pick(rng, (brick(0.022), planks(0.03), brick(0.03, 1.6, 0.86)))
    s.poly([(0.27, 1), (0.34, 0.36), (0.5, 0.36), (0.57, 1)], body, shade=0.32, round_=True, texture=surface)
    s.poly([(0.26, 1), (0.27, 0.95), (0.57, 0.95), (0.58, 1)], (120, 112, 104), shade=0.3, round_=True)
    s.rect(0.385, 0.84, 0.455, 1.0, (86, 62, 46), texture=planks(0.02))
    for y in (0.52, 0.68):
        _window(s, 0.395, y, 0.05, 0.06, (240, 234, 222), dark)
    s.poly([(0.26, 0.74), (0.58, 0.74), (0.58, 0.762), (0.26, 0.762)], (110, 82, 60))
    for x in np.linspace(0.26, 0.58, 9):
        s.line([(float(x), 0.70), (float(x), 0.75)], 0.007, (96, 72, 54))
    s.line([(0.26, 0.702), (0.58, 0.702)], 0.008, (120, 92, 68))
    s.blob(
        [(0.325, 0.37), (0.345, 0.27), (0.42, 0.225), (0.495, 0.27), (0.515, 0.37)],
        cap,
        shade=0.3,
        round_=True,
        texture=planks(0.03),
    )
    if season == "winter":
        s.blob([(0.345, 0.28), (0.42, 0.218), (0.495, 0.28), (0.42, 0.262)], SNOW, grain=0.03)
    _sails(s, rng.uniform(0, np.pi / 2), pick(rng, ((246, 240, 224), (232, 214, 178), (206, 92, 76))))
    return s


def _sails(s: Sprite, angle: float, cloth: Color) -> None:
    hub_x, hub_y, reach = 0.42, 0.34, 0.345
    for quarter in range(4):
        c, n = np.cos(angle + quarter * np.pi / 2), np.sin(angle + quarter * np.pi / 2)

        def at(along: float, side: float, c: float = c, n: float = n) -> tuple[float, float]:
            return hub_x + c * along - n * side, hub_y + n * along + c * side

        s.poly([at(0.07, 0.012), at(reach, 0.012), at(reach, 0.078), at(0.07, 0.07)], cloth, shade=0.1, grain=0.08)
        for along in np.linspace(0.07, reach, 8):
            s.line([at(float(along), -0.012), at(float(along), 0.075)], 0.006, (104, 76, 54))
        s.line([at(0.07, 0.04), at(reach, 0.045)], 0.005, (104, 76, 54))
        s.line([at(0, 0), at(reach + 0.01, 0)], 0.014, (84, 60, 44))
    s.ellipse(hub_x, hub_y, 0.026, 0.026, (70, 52, 42), shade=0.3)


def lighthouse(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A banded tower with gallery and lantern on a foot of rock."""
    s = Sprite(rng, height, 0.62, lit)
    band = pick(rng, ((196, 52, 46), (196, 52, 46), (44, 70, 120), (52, 52, 58), (212, 112, 44)))
    white, middle, foot = (244, 240, 230), 0.31, 0.93
    bands = int(rng.integers(3, 7))

    def half(y: float) -> float:
        return 0.066 + 0.062 * (y - 0.2) / (foot - 0.2)

    edges = np.linspace(0.2, foot, 2 * (bands // 2) + 2)
    for i, (top, bottom) in enumerate(itertools.pairwise(edges)):
        outline = [
            (middle - half(top), top),
            (middle + half(top), top),
            (middle + half(bottom), bottom),
            (middle - half(bottom), bottom),
        ]
        s.poly(outline, white if i % 2 else band, shade=0.36, round_=True, grain=0.05, texture=brick(0.02, 2, 0.97))
    for y in (0.36, 0.55, 0.74):
        s.rect(middle - 0.012, y, middle + 0.014, y + 0.036, LAMP if dark else (70, 80, 96))
    s.rect(middle - 0.052, 0.1, middle + 0.052, 0.2, LAMP if dark else (214, 226, 226), shade=0.4, round_=True)
    for x in np.linspace(middle - 0.05, middle + 0.05, 5):
        s.line([(float(x), 0.1), (float(x), 0.2)], 0.005, (60, 60, 66))
    s.rect(middle - 0.1, 0.19, middle + 0.1, 0.208, (66, 66, 74), shade=0.2)
    s.line([(middle - 0.095, 0.155), (middle + 0.095, 0.155)], 0.006, (66, 66, 74))
    for x in np.linspace(middle - 0.094, middle + 0.094, 7):
        s.line([(float(x), 0.155), (float(x), 0.195)], 0.004, (66, 66, 74))
    s.blob(
        [(middle - 0.07, 0.105), (middle - 0.04, 0.06), (middle, 0.04), (middle + 0.04, 0.06), (middle + 0.07, 0.105)],
        band,
        shade=0.3,
        round_=True,
    )
    s.line([(middle, 0.05), (middle, 0.012)], 0.008, (66, 66, 74))
    for x, y, rx, ry in ((0.16, 0.95, 0.13, 0.07), (0.46, 0.955, 0.14, 0.065), (0.31, 0.965, 0.2, 0.06)):
        rough = [
            (x + rx * np.cos(a) * rng.uniform(0.8, 1.1), y + ry * np.sin(a) * rng.uniform(0.7, 1.1))
            for a in np.linspace(0, 2 * np.pi, 10)[:-1]
        ]
        s.poly([(px, min(py, 1.0)) for px, py in rough], jitter(rng, (118, 108, 100), 8), shade=0.3, grain=0.2)
    return s


def fence(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A run of posts and rails, or of white pickets."""
    posts = int(rng.integers(4, 7))
    gap = rng.uniform(0.85, 1.05)
    s = Sprite(rng, height, gap * (posts - 1) + 0.3, lit)
    pickets = rng.random() < 0.45
    wood = (238, 234, 224) if pickets else jitter(rng, pick(rng, WOOD), 6)
    last = 0.15 + gap * (posts - 1)
    for y in (0.32, 0.62) if pickets else (0.26, 0.52, 0.78)[: int(rng.integers(2, 4))]:
        sag = [(0.04, y + rng.uniform(-0.03, 0.03))]
        sag += [(0.15 + gap * i, y + rng.uniform(-0.03, 0.03)) for i in range(posts)] + [(last + 0.1, y)]
        rail = [(x, py - 0.055) for x, py in sag] + [(x, py + 0.055) for x, py in reversed(sag)]
        s.poly(rail, lighter(wood, 0.9), shade=0.05, grain=0.15, texture=planks(0.11, upright=False))
    uprights = np.arange(0.15, last + 0.01, 0.22) if pickets else 0.15 + gap * np.arange(posts)
    half = 0.062 if pickets else 0.085
    for x in uprights:
        lean, top = rng.uniform(-0.02, 0.02), rng.uniform(0.03, 0.1)
        point = 0.0 if pickets else top
        outline = [
            (x - half, 1),
            (x - half + lean, top + 0.04),
            (x + lean, point),
            (x + half + lean, top + 0.04),
            (x + half, 1),
        ]
        s.poly([(float(px), float(py)) for px, py in outline], jitter(rng, wood, 5), shade=0.25, grain=0.15)
        if season == "winter":
            s.ellipse(float(x + lean), top + 0.02, half * 1.15, 0.05, mix(SNOW, wood, 0.05), grain=0.02)
    return s
