"""Things that are in no class: they make the scenes less bare and the labels less obvious."""

import itertools

import numpy as np
from paint import Sprite, jitter, lighter, pick


def rock(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    s = Sprite(rng, height, 1.7, lit)
    stone = jitter(rng, pick(rng, ((136, 130, 124), (118, 112, 110), (150, 138, 122))), 8)
    for x, y, rx, ry in ((1.2, 0.8, 0.4, 0.26), (0.7, 0.62, 0.62, 0.52), (0.3, 0.86, 0.26, 0.2)):
        turns = np.linspace(0, 2 * np.pi, 11)[:-1]
        edge = [
            (x + rx * np.cos(a) * rng.uniform(0.85, 1.05), y + ry * np.sin(a) * rng.uniform(0.8, 1.05)) for a in turns
        ]
        s.poly([(px, min(0.99, py)) for px, py in edge], stone, shade=0.3, grain=0.22)
    if season == "winter":
        s.blob(
            [(0.2, 0.42), (0.45, 0.14), (0.9, 0.12), (1.2, 0.4), (0.9, 0.34), (0.5, 0.36)], (240, 245, 252), grain=0.03
        )
    return s


def bale(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A round straw bale, its spiral toward us."""
    s = Sprite(rng, height, 1.45, lit)
    straw = jitter(rng, (216, 176, 88), 6)
    s.blob(
        [(0.5, 0.02), (1.0, 0.05), (1.36, 0.25), (1.4, 0.7), (1.15, 0.98), (0.5, 1.0)],
        lighter(straw, 0.84),
        shade=0.3,
        grain=0.2,
    )
    s.ellipse(0.5, 0.5, 0.47, 0.49, straw, shade=0.15, grain=0.25)
    turn = np.linspace(0, 9 * np.pi, 120)
    s.line([(0.5 + 0.014 * t * np.cos(t), 0.5 + 0.0148 * t * np.sin(t)) for t in turn], 0.016, lighter(straw, 0.72))
    return s


def reeds(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    s = Sprite(rng, height, 0.9, lit)
    green = (120, 116, 60) if season == "autumn" else (86, 122, 62)
    for _ in range(26):
        x, tip = rng.uniform(0.22, 0.68), rng.uniform(0.1, 0.6)
        s.line(
            [(x, 1), (x + rng.normal(0, 0.04), (1 + tip) / 2), (x + rng.normal(0, 0.12), tip)],
            0.018,
            jitter(rng, green, 13),
        )
    for _ in range(int(rng.integers(2, 6))):
        x, top = rng.uniform(0.2, 0.7), rng.uniform(0.02, 0.3)
        s.line([(x, 1), (x, top)], 0.016, jitter(rng, green, 8))
        s.ellipse(x, top + 0.1, 0.026, 0.085, (98, 62, 40), shade=0.3)
    return s


def snowman(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    s = Sprite(rng, height, 0.8, lit)
    snow, scarf = (242, 246, 252), pick(rng, ((206, 54, 48), (52, 104, 172), (66, 142, 112)))
    for side in (-1, 1):
        s.line([(0.4, 0.48), (0.4 + side * 0.36, 0.36)], 0.022, (92, 68, 52))
    for y, r in ((0.8, 0.21), (0.5, 0.165), (0.27, 0.12)):
        s.ellipse(0.4, y, r * 1.05, r, snow, shade=0.3, grain=0.04)
    s.rect(0.31, 0.345, 0.49, 0.39, scarf, shade=0.2, grain=0.1)
    s.rect(0.44, 0.37, 0.49, 0.52, scarf, shade=0.2, grain=0.1)
    s.rect(0.27, 0.155, 0.53, 0.18, (44, 42, 48))
    s.rect(0.32, 0.02, 0.48, 0.17, (44, 42, 48), shade=0.3)
    s.poly([(0.38, 0.27), (0.22, 0.295), (0.38, 0.305)], (236, 130, 46))
    for x, y in ((0.34, 0.235), (0.43, 0.235), (0.4, 0.46), (0.4, 0.53), (0.4, 0.6)):
        s.dot(x, y, 0.015, 0.015, (44, 42, 48))
    return s


def parasol(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    s = Sprite(rng, height, 1.15, lit)
    first = pick(rng, ((214, 62, 56), (52, 112, 176), (240, 176, 56), (66, 150, 128)))
    s.line([(0.56, 0.12), (0.66, 1.0)], 0.026, (206, 196, 176))
    hem = np.linspace(0.04, 1.08, 7)
    for i, (left, right) in enumerate(itertools.pairwise(hem)):
        sag = [0.46 - 0.1 * np.sin(np.pi * (x - 0.04) / 1.04) for x in (left, right)]
        outline = [(0.56, 0.08), (left, sag[0]), ((left + right) / 2, max(sag) + 0.03), (right, sag[1])]
        s.poly(outline, lighter((246, 240, 226) if i % 2 else first, 1.05 + 0.05 * lit * (i - 2.5)))
    s.poly([(0.14, 0.95), (0.86, 0.93), (1.04, 1.0), (0.08, 1.0)], lighter(first, 0.9), grain=0.1)
    return s
