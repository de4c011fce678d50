"""Things that graze and swim: sheep, duck."""

import numpy as np
from paint import Sprite, lighter, pick


def sheep(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """Standing or grazing; a fleece of many dabs, a bare dark or pale face."""
    s = Sprite(rng, height, 1.35, lit)
    black = rng.random() < 0.12
    shade, wool = ((44, 40, 42), (104, 98, 98)) if black else ((150, 138, 128), (250, 246, 234))
    face = pick(rng, ((52, 46, 46), (52, 46, 46), (222, 206, 186)))
    for x in (0.36, 0.5, 0.82, 0.96):
        s.rect(x - 0.03, 0.66, x + 0.03, 1.0, lighter(face, 0.8 if x in (0.5, 0.82) else 1.0), shade=0.2)
        s.rect(x - 0.034, 0.955, x + 0.034, 1.0, (40, 34, 34))
    turn, out = rng.uniform(0, 2 * np.pi, 420), np.sqrt(rng.random(420))
    disc = np.stack([np.cos(turn) * out, np.sin(turn) * out], 1)
    light = 0.52 + 0.42 * (disc @ np.array([0.5 * s.lit, -0.85])) + rng.normal(0, 0.1, 420)
    s.ellipse(0.66, 0.47, 0.4, 0.27, shade)
    s.dabs(disc * (0.42, 0.29) + (0.66, 0.46), rng.uniform(0.028, 0.052, 420), light, shade, wool)
    s.dabs(disc[:24] * (0.05, 0.08) + (1.1, 0.44), np.full(24, 0.035), light[:24] - 0.1, shade, wool)
    grazing = rng.random() < 0.45
    hx, hy = (0.2, 0.74) if grazing else (0.22, 0.3)
    if grazing:
        s.dabs(disc[:90] * (0.1, 0.17) + (0.32, 0.58), np.full(90, 0.04), light[:90] - 0.05, shade, wool)
    s.blob(
        [
            (hx + 0.1, hy - 0.11),
            (hx, hy - 0.1),
            (hx - 0.09, hy + 0.06),
            (hx - 0.06, hy + 0.13),
            (hx + 0.03, hy + 0.12),
            (hx + 0.12, hy + 0.03),
        ],
        face,
        shade=0.25,
    )
    for ear in ((hx + 0.13, hy - 0.05, 0.075, 0.032), (hx - 0.04, hy - 0.09, 0.05, 0.03)):
        s.ellipse(*ear, lighter(face, 0.85))
    s.dabs(disc[:40] * (0.09, 0.055) + (hx + 0.06, hy - 0.12), np.full(40, 0.032), light[:40] + 0.1, shade, wool)
    s.dot(hx - 0.01, hy - 0.01, 0.014, 0.016, (245, 240, 225) if face[0] < 100 else (40, 34, 34))
    return s


def duck(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A drake, a brown hen or a white farm duck, body at the ground (or the water) line."""
    s = Sprite(rng, height, 1.3, lit)
    body, head, bill = pick(
        rng,
        (
            ((196, 186, 174), (30, 104, 70), (232, 190, 60)),
            ((166, 122, 82), (138, 100, 68), (206, 136, 60)),
            ((248, 244, 234), (250, 247, 240), (244, 152, 40)),
        ),
    )
    drake = head[1] > head[0] + 30
    s.blob([(0.12, 0.24), (0.0, 0.3), (0.02, 0.36), (0.16, 0.35)], bill, shade=0.2)
    s.blob(
        [
            (0.3, 0.62),
            (0.24, 0.85),
            (0.42, 1.0),
            (0.9, 1.0),
            (1.14, 0.84),
            (1.27, 0.6),
            (1.08, 0.64),
            (0.8, 0.56),
            (0.5, 0.6),
        ],
        body,
        shade=0.2,
        grain=0.12,
    )
    s.blob(
        [(0.3, 0.36), (0.28, 0.7), (0.36, 0.86), (0.56, 0.72), (0.46, 0.5), (0.44, 0.3)],
        (122, 74, 50) if drake else lighter(body, 1.03),
        shade=0.2,
    )
    s.ellipse(0.27, 0.22, 0.18, 0.185, head, shade=0.4, round_=True)
    s.blob([(0.22, 0.3), (0.26, 0.46), (0.47, 0.46), (0.44, 0.25)], head, shade=0.3, round_=True)
    if drake:
        s.poly([(0.265, 0.45), (0.475, 0.44), (0.48, 0.49), (0.265, 0.5)], (246, 244, 238))
        s.poly([(1.05, 0.68), (1.26, 0.6), (1.14, 0.8), (1.02, 0.84)], (44, 42, 46))
    wing = (150, 142, 136) if drake else lighter(body, 0.88)
    s.blob(
        [(0.5, 0.68), (0.58, 0.6), (0.86, 0.6), (1.12, 0.68), (0.92, 0.84), (0.64, 0.86)], wing, shade=0.25, grain=0.15
    )
    for y, length in ((0.7, 0.4), (0.76, 0.3), (0.81, 0.2)):
        s.line([(0.62, y), (0.62 + length, y - 0.02)], 0.012, lighter(wing, 0.8))
    if drake:
        s.poly([(0.84, 0.72), (1.0, 0.69), (0.94, 0.77), (0.82, 0.79)], (70, 90, 170))
    s.dot(0.22, 0.19, 0.026, 0.028, (24, 22, 24))
    s.dot(0.213, 0.183, 0.009, 0.009, (255, 255, 255))
    return s
