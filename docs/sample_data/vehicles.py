"""Things that carry people: boat, balloon, tractor."""

import numpy as np
from paint import Color, Sprite, jitter, lighter, pick, planks

GAY = (
    (206, 54, 48),
    (246, 196, 66),
    (52, 104, 172),
    (248, 240, 224),
    (66, 142, 112),
    (232, 124, 52),
    (132, 74, 146),
    (36, 62, 104),
)


def boat(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A sailing boat, or a fishing boat with a wheelhouse; the bottom edge is the water line."""
    return _sailing(rng, height, lit) if rng.random() < 0.72 else _fishing(rng, height, lit, dark)


def _hull(s: Sprite, left: float, right: float, deck: float, colour: Color) -> None:
    bow, stern = (left, deck - 0.035), (right, deck + 0.01)
    outline = [
        bow,
        ((left + right) / 2, deck + 0.02),
        stern,
        (right - 0.05, 1.0),
        (left + 0.16, 1.0),
        (left + 0.07, 0.96),
    ]
    s.poly(outline, colour, shade=0.18, grain=0.08, texture=planks(0.045, upright=False))
    s.line([bow, ((left + right) / 2, deck + 0.02), stern], 0.018, (244, 236, 218))
    s.poly([(left + 0.09, 0.97), (right - 0.04, 0.97), (right - 0.05, 1.0), (left + 0.16, 1.0)], lighter(colour, 0.55))


def _sailing(rng: np.random.Generator, height: int, lit: int) -> Sprite:
    s = Sprite(rng, height, 0.86, lit)
    hull = pick(rng, ((150, 60, 48), (40, 66, 104), (236, 230, 216), (58, 104, 90), (128, 88, 58)))
    sail = pick(rng, ((250, 246, 234), (250, 246, 234), (238, 218, 178), (202, 78, 58), (230, 150, 70)))
    mast, deck = rng.uniform(0.38, 0.44), 0.86
    main = [(mast + 0.015, 0.05), (mast + 0.13, 0.36), (mast + 0.33, 0.77), (mast + 0.17, 0.785), (mast + 0.015, 0.78)]
    s.poly(main, sail, shade=0.16, grain=0.06)
    for y in (0.22, 0.38, 0.54, 0.68):
        s.line([(mast + 0.015, y), (mast + 0.02 + 0.38 * (y - 0.05) * 1.05, y + 0.02)], 0.005, lighter(sail, 0.84))
    if rng.random() < 0.3:
        s.poly(
            [(mast + 0.015, 0.5), (mast + 0.19, 0.5), (mast + 0.235, 0.59), (mast + 0.015, 0.59)],
            pick(rng, GAY),
            grain=0.05,
        )
    s.poly(
        [(mast - 0.015, 0.1), (mast - 0.13, 0.5), (mast - 0.33, 0.8), (mast - 0.14, 0.77), (mast - 0.02, 0.76)],
        lighter(sail, 0.93),
        shade=0.14,
    )
    s.line([(mast, 0.02), (mast, deck)], 0.018, (112, 82, 58))
    s.line([(mast, 0.79), (mast + 0.35, 0.785)], 0.014, (112, 82, 58))
    s.poly([(mast, 0.015), (mast + 0.085, 0.035), (mast, 0.06)], pick(rng, GAY))
    _hull(s, 0.04, 0.82, deck, hull)
    return s


def _fishing(rng: np.random.Generator, height: int, lit: int, dark: bool) -> Sprite:
    s = Sprite(rng, height, 1.3, lit)
    hull = pick(rng, ((176, 52, 44), (38, 84, 132), (58, 112, 92), (226, 168, 56)))
    s.line([(0.42, 0.12), (0.42, 0.7)], 0.022, (112, 82, 58))
    s.line([(0.42, 0.14), (0.06, 0.62)], 0.007, (70, 60, 54))
    s.line([(0.42, 0.14), (1.22, 0.66)], 0.007, (70, 60, 54))
    s.rect(0.66, 0.36, 0.98, 0.7, (242, 236, 222), shade=0.12, texture=planks(0.05))
    s.rect(0.63, 0.32, 1.01, 0.37, hull)
    for x in (0.7, 0.83):
        s.rect(x, 0.42, x + 0.1, 0.53, (255, 222, 130) if dark else (84, 112, 136), shade=0.3)
    s.poly(
        [(0.03, 0.56), (0.62, 0.68), (1.27, 0.64), (1.2, 1.0), (0.2, 1.0), (0.11, 0.86)],
        hull,
        shade=0.2,
        texture=planks(0.06, upright=False),
    )
    s.line([(0.03, 0.57), (0.62, 0.69), (1.27, 0.65)], 0.03, (246, 238, 220))
    s.poly([(0.15, 0.93), (1.215, 0.93), (1.2, 1.0), (0.2, 1.0)], lighter(hull, 0.5))
    for x in (0.45, 0.62, 0.8):
        s.ellipse(x, 0.78, 0.035, 0.045, (226, 132, 52), shade=0.3)
    return s


def balloon(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A hot-air balloon: gores that narrow to the crown, ropes, a wicker basket."""
    s = Sprite(rng, height, 0.76, lit)
    first, second = (GAY[i] for i in rng.permutation(len(GAY))[:2])
    third = pick(rng, GAY)
    middle, wide = 0.38, 0.36
    t = np.linspace(0, 1, 40)
    # Half width from crown to mouth: a sphere above, a cone below.
    profile = np.where(t < 0.5, np.sqrt(np.clip(1 - (1 - t / 0.5) ** 2, 0, 1)), np.cos((t - 0.5) / 0.5 * 1.22) ** 0.9)
    level = 0.01 + 0.75 * t
    gores = int(rng.integers(7, 12))
    edges = np.sin(np.linspace(-np.pi / 2, np.pi / 2, gores + 1))
    for i in range(gores):
        left = [(middle + wide * p * edges[i], y) for p, y in zip(profile, level, strict=True)]
        right = [(middle + wide * p * edges[i + 1], y) for p, y in zip(profile, level, strict=True)]
        outward = (edges[i] + edges[i + 1]) / 2 * s.lit
        gore = lighter((first, second)[i % 2], 1.08 + 0.26 * outward - 0.22 * max(0.0, -outward))
        s.poly(left + right[::-1], gore, shade=0.05, grain=0.05)
    if rng.random() < 0.5:
        band = [(middle - wide * profile[k], level[k]) for k in range(18, 25)]
        band += [(middle + wide * profile[k], level[k]) for k in range(24, 17, -1)]
        s.poly(band, third, shade=0.38, round_=True)
    mouth = wide * profile[-1]
    for x in np.linspace(-1, 1, 4):
        s.line([(middle + mouth * x, 0.76), (middle + 0.055 * x, 0.89)], 0.006, (78, 64, 54))
    s.poly(
        [(middle - 0.068, 0.88), (middle + 0.068, 0.88), (middle + 0.055, 0.99), (middle - 0.055, 0.99)],
        (146, 100, 60),
        shade=0.35,
        round_=True,
        texture=planks(0.018, upright=False),
    )
    s.line([(middle - 0.07, 0.885), (middle + 0.07, 0.885)], 0.016, (96, 64, 42))
    return s


def tractor(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """Seen from the side: big rear wheel, small front wheel, bonnet, glazed cab, exhaust."""
    s = Sprite(rng, height, 1.42, lit)
    paint = jitter(rng, pick(rng, ((196, 46, 40), (58, 122, 58), (44, 96, 164), (232, 170, 46))), 6)
    s.line([(0.4, 0.08), (0.4, 0.45)], 0.035, (60, 58, 60))
    s.rect(0.76, 0.1, 1.24, 0.5, lighter(paint, 0.9))
    s.poly(
        [(0.8, 0.13), (1.0, 0.13), (1.0, 0.46), (0.74, 0.46)], (255, 226, 150) if dark else (166, 198, 210), shade=0.25
    )
    s.rect(1.04, 0.13, 1.2, 0.4, (255, 226, 150) if dark else (146, 178, 192), shade=0.25)
    s.blob([(0.7, 0.08), (0.72, 0.03), (1.0, 0.02), (1.28, 0.04), (1.29, 0.1), (1.0, 0.11)], lighter(paint, 1.05))
    s.blob(
        [(0.16, 0.5), (0.18, 0.4), (0.4, 0.37), (0.8, 0.42), (0.84, 0.74), (0.5, 0.76), (0.18, 0.74)],
        paint,
        shade=0.22,
        grain=0.05,
    )
    for y in (0.5, 0.56, 0.62):
        s.line([(0.26, y), (0.5, y + 0.01)], 0.014, lighter(paint, 0.55))
    s.rect(0.14, 0.46, 0.19, 0.68, (70, 68, 70))
    s.dot(0.165, 0.5, 0.026, 0.03, (255, 244, 190))
    s.rect(0.3, 0.72, 0.95, 0.8, (66, 64, 66), shade=0.2)
    s.blob(
        [(0.72, 0.56), (0.82, 0.36), (1.04, 0.32), (1.3, 0.42), (1.37, 0.6), (1.2, 0.5), (0.9, 0.52)],
        lighter(paint, 0.96),
        shade=0.15,
    )
    _wheel(s, 1.05, 0.68, 0.32, (238, 196, 70) if paint[0] < 200 else (240, 232, 214))
    _wheel(s, 0.34, 0.8, 0.2, (238, 196, 70) if paint[0] < 200 else (240, 232, 214))
    return s


def _wheel(s: Sprite, x: float, y: float, r: float, hub: Color) -> None:
    s.ellipse(x, y, r, r, (46, 44, 46), shade=0.3, grain=0.2)
    for angle in np.arange(0, 2 * np.pi, np.pi / 11):
        inner, outer = 0.78 * r, 0.99 * r
        c, n = np.cos(angle), np.sin(angle)
        s.line(
            [(x + c * inner, y + n * inner), (x + np.cos(angle + 0.14) * outer, y + np.sin(angle + 0.14) * outer)],
            0.016,
            (78, 74, 74),
        )
    s.ellipse(x, y, r * 0.55, r * 0.55, hub, shade=0.25)
    s.ellipse(x, y, r * 0.2, r * 0.2, lighter(hub, 0.6))
