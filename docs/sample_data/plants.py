"""Things that grow: tree, flower, mushroom."""

import numpy as np
from paint import Color, Sprite, jitter, lighter, mix, pick

SNOW = (240, 245, 252)
CROWNS = {
    "summer": (((44, 84, 40), (142, 180, 82)), ((34, 78, 52), (112, 168, 98)), ((58, 92, 34), (176, 192, 84))),
    "spring": (((168, 96, 116), (250, 208, 216)), ((62, 104, 44), (176, 206, 100)), ((180, 150, 150), (252, 240, 238))),
    "autumn": (((132, 56, 26), (238, 150, 54)), ((138, 84, 22), (244, 198, 76)), ((108, 34, 30), (214, 86, 56))),
}
BARKS = ((96, 72, 54), (112, 92, 76), (78, 60, 48), (206, 200, 190))


def tree(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A broad crown, a poplar, a conifer, or bare branches in winter."""
    kind = pick(rng, ("pine", "pine", "bare") if season == "winter" else ("broad", "broad", "broad", "poplar", "pine"))
    if kind == "pine":
        return _pine(rng, height, lit, season)
    if kind == "bare":
        return _bare(rng, height, lit)
    wide = rng.uniform(0.8, 1.0) if kind == "broad" else 0.42
    s = Sprite(rng, height, wide, lit)
    bark, middle = pick(rng, BARKS), wide / 2
    thick = 0.045 if kind == "broad" else 0.028
    trunk = [
        (middle - thick * 1.6, 1),
        (middle - thick, 0.85),
        (middle - thick * 0.7, 0.5),
        (middle + thick * 0.7, 0.5),
        (middle + thick, 0.85),
        (middle + thick * 1.6, 1),
    ]
    s.poly(trunk, bark, shade=0.35, round_=True, grain=0.2)
    for side in (-1, 1):
        s.line([(middle, 0.74), (middle + side * wide * 0.2, 0.52)], thick * 0.7, lighter(bark, 0.85))
    bottom = rng.uniform(0.68, 0.78) if kind == "broad" else 0.9
    center_y, reach_y, reach_x = bottom / 2 + 0.01, bottom / 2 - 0.02, wide / 2 - 0.03
    _crown(s, middle, center_y, reach_x, reach_y, *pick(rng, CROWNS[season]))
    return s


def _crown(s: Sprite, x: float, y: float, rx: float, ry: float, dark: Color, bright: Color) -> None:
    """Leaf clumps inside an ellipse; each is lit by itself and by its place in the crown."""
    rng, clumps = s.rng, 19
    # A sunflower spiral spreads the clumps evenly, so that the crown has no holes.
    angle = np.arange(clumps) * 2.39996 + rng.uniform(0, 2 * np.pi) + rng.normal(0, 0.15, clumps)
    radius = 0.8 * np.sqrt((np.arange(clumps) + 0.3) / clumps) * rng.uniform(0.85, 1.05, clumps)
    centre = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    size = rng.uniform(0.22, 0.36, clumps)
    count = int(np.clip(s.unit * 2.6, 500, 1700))
    owner = rng.integers(clumps, size=count)
    turn, out = rng.uniform(0, 2 * np.pi, count), np.sqrt(rng.uniform(0, 1, count))
    local = np.stack([np.cos(turn), np.sin(turn)], 1) * out[:, None]
    place = np.clip(centre[owner] + local * size[owner, None], -1.02, 1.02)
    toward = np.array([0.55 * s.lit, -0.84])
    light = 0.42 + 0.34 * (local @ toward) + 0.3 * (place @ toward) + rng.normal(0, 0.1, count)
    s.ellipse(x, y, rx * 0.72, ry * 0.78, lighter(dark, 0.9), grain=0.15)
    for (cx, cy), r in zip(centre.tolist(), size.tolist(), strict=True):
        s.dot(x + cx * rx, y + cy * ry, r * rx * 0.92, r * ry * 0.92, dark)
    sizes = rng.uniform(0.4, 0.75, count) * np.sqrt(0.9 / count)
    s.dabs(place * (rx, ry) + (x, y), sizes, light, lighter(dark, 0.82), bright)


def _pine(rng: np.random.Generator, height: int, lit: int, season: str) -> Sprite:
    wide = rng.uniform(0.46, 0.6)
    s = Sprite(rng, height, wide, lit)
    middle = wide / 2
    s.rect(middle - 0.028, 0.84, middle + 0.028, 1.0, (92, 68, 52), shade=0.35, grain=0.2)
    dark, bright = (22, 56, 46), pick(rng, ((86, 132, 84), (70, 120, 100), (104, 138, 74)))
    tiers = int(rng.integers(6, 9))
    for tier in range(tiers)[::-1]:
        top, foot = 0.015 + 0.78 * tier / tiers, 0.16 + 0.76 * (tier + 0.4) / tiers
        half = (middle - 0.015) * (0.2 + 0.8 * (tier + 1) / tiers)
        drop = np.linspace(-1, 1, 9)
        hem = [(middle + half * d, foot - 0.05 * abs(d) ** 2 + rng.uniform(-0.012, 0.016)) for d in drop[::-1]]
        s.poly([(middle, top), *hem], lighter(dark, 1.15), shade=0.2)
        for _ in range(110):
            along, across = np.sqrt(rng.random()), rng.uniform(-1, 1)
            x, y = middle + across * half * along * 0.95, top + (foot - top) * along - 0.04 * across**2 * along
            light = 0.4 + 0.4 * across * lit + 0.25 * (0.6 - along) + rng.normal(0, 0.14)
            snowy = season == "winter" and rng.random() < 0.62 - 0.3 * along + 0.15 * across * lit
            tone = jitter(rng, SNOW if snowy else mix(dark, bright, float(np.clip(light, 0, 1))), 8)
            s.line([(x, y), (x + 0.03 * across, y + 0.032)], 0.011 if snowy else 0.007, tone)
    return s


def _bare(rng: np.random.Generator, height: int, lit: int) -> Sprite:
    s = Sprite(rng, height, 0.9, lit)
    bark = (92, 76, 68)

    def branch(x: float, y: float, angle: float, length: float, thick: float) -> None:
        end = (x + np.cos(angle) * length, y - np.sin(angle) * length)
        s.line([(x, y), end], thick, jitter(rng, bark, 5))
        if abs(np.cos(angle)) > 0.3 or thick < 0.02:
            s.line([(x, y - thick * 0.45), (end[0], end[1] - thick * 0.35)], thick * 0.4, SNOW)
        if thick > 0.006:
            for turn in (rng.uniform(0.25, 0.6), -rng.uniform(0.25, 0.6), rng.uniform(-0.15, 0.15)):
                branch(*end, angle + turn, length * rng.uniform(0.62, 0.82), thick * 0.6)

    s.poly([(0.4, 1), (0.425, 0.72), (0.475, 0.72), (0.5, 1)], bark, shade=0.3, round_=True, grain=0.2)
    branch(0.45, 0.76, np.pi / 2, 0.2, 0.05)
    return s


def flower(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """A clump of one kind: poppies, daisies, sunflowers, tulips or cornflowers."""
    s = Sprite(rng, height, 1.15, lit)
    bloom = pick(rng, (_poppy, _daisy, _sunflower, _tulip, _cornflower))
    green = jitter(rng, (84, 132, 58), 8)
    for _ in range(26):
        x = rng.uniform(0.12, 1.03)
        s.line(
            [(x, 1), (x + rng.uniform(-0.1, 0.1), rng.uniform(0.66, 0.9))], 0.014, jitter(rng, lighter(green, 0.8), 10)
        )
    count = int(rng.integers(4, 8))
    spots = sorted(
        ((float(x), float(rng.uniform(0.16, 0.5))) for x in np.linspace(0.18, 0.97, count)), key=lambda p: p[1]
    )
    hue = rng.random()
    for x, y in spots:
        foot = 0.575 + (x - 0.575) * 0.6
        s.line([(foot, 1), ((x + foot) / 2 + 0.01, (1 + y) / 2), (x, y)], 0.018, jitter(rng, green, 8))
        leaf_y = (1 + y) / 2 + 0.06
        side = pick(rng, (-1, 1))
        s.blob(
            [
                (foot, leaf_y + 0.08),
                (foot + side * 0.07, leaf_y - 0.03),
                (foot + side * 0.13, leaf_y - 0.07),
                (foot + side * 0.06, leaf_y + 0.04),
            ],
            green,
        )
        bloom(s, x, y, rng.uniform(0.115, 0.15), hue)
    return s


def _petals(s: Sprite, x: float, y: float, reach: float, count: int, width: float, colour: Color) -> None:
    start = s.rng.uniform(0, np.pi)
    for angle in start + np.arange(count) * 2 * np.pi / count:
        c, n = np.cos(angle), np.sin(angle)
        outline = [(0.15, 0), (0.6, width), (1, width * 0.4), (1, -width * 0.4), (0.6, -width)]
        tone = jitter(s.rng, lighter(colour, 1 + 0.14 * (c * s.lit - n)), 6)
        s.draw.polygon(s.pixels(_turned(outline, x, y, reach, c, n)), fill=(*tone, 255))


def _turned(outline, x: float, y: float, reach: float, c: float, n: float) -> list[tuple[float, float]]:
    # 0.85: flowers are seen a little from above, so their discs are flattened.
    return [(x + reach * (c * a - n * b), y + 0.85 * reach * (n * a + c * b)) for a, b in outline]


def _poppy(s: Sprite, x: float, y: float, r: float, hue: float) -> None:
    red = mix((214, 44, 34), (236, 96, 40), hue)
    for dx, dy in ((-0.5, 0.1), (0.5, 0.1), (0, -0.4), (0, 0.4)):
        s.ellipse(x + dx * r, y + dy * r, r * 0.72, r * 0.62, jitter(s.rng, red, 8), shade=0.22, grain=0.1)
    s.dot(x, y, r * 0.24, r * 0.2, (40, 30, 34))


def _daisy(s: Sprite, x: float, y: float, r: float, hue: float) -> None:
    _petals(s, x, y, r, 14, 0.16, mix((250, 248, 244), (244, 208, 226), float(hue > 0.6)))
    s.ellipse(x, y, r * 0.36, r * 0.3, (240, 190, 50), shade=0.3, grain=0.2)


def _sunflower(s: Sprite, x: float, y: float, r: float, hue: float) -> None:
    _petals(s, x, y, r * 1.2, 17, 0.15, (238, 166, 24))
    _petals(s, x, y, r * 1.1, 15, 0.15, (252, 200, 44))
    s.ellipse(x, y, r * 0.58, r * 0.5, (88, 56, 32), shade=0.3, grain=0.5)


def _tulip(s: Sprite, x: float, y: float, r: float, hue: float) -> None:
    colour = (
        pick(s.rng, ((222, 62, 84), (246, 190, 60), (232, 120, 170), (150, 76, 160))) if hue > 0.5 else (226, 58, 70)
    )
    cup = [
        (x - r * 0.62, y - r * 0.75),
        (x - r * 0.75, y + r * 0.2),
        (x, y + r * 0.9),
        (x + r * 0.75, y + r * 0.2),
        (x + r * 0.62, y - r * 0.75),
        (x, y - r * 0.1),
    ]
    s.blob([(x - r * 0.4, y), (x, y - r * 0.95), (x + r * 0.4, y), (x, y + r * 0.5)], lighter(colour, 0.8))
    s.blob(cup, colour, shade=0.28, grain=0.08)


def _cornflower(s: Sprite, x: float, y: float, r: float, hue: float) -> None:
    _petals(s, x, y, r, 11, 0.2, mix((58, 84, 208), (132, 84, 200), hue))
    _petals(s, x, y, r * 0.6, 9, 0.25, (74, 60, 150))


def mushroom(rng: np.random.Generator, height: int, lit: int, season: str, dark: bool) -> Sprite:
    """One to three toadstools: domed or flat cap, gills, ringed stem, spots on the red ones."""
    s = Sprite(rng, height, 1.15, lit)
    cap = pick(rng, ((204, 40, 32), (204, 40, 32), (214, 66, 36), (150, 96, 58), (196, 140, 80)))
    spots = cap[0] > 200
    members = [(0.55, 1.0, 1.0), (0.24, 1.0, 0.56), (0.9, 1.0, 0.66)][: int(rng.integers(1, 4))]
    for x, foot, scale in members[::-1]:
        _toadstool(s, x, foot, scale * rng.uniform(0.88, 0.98), jitter(rng, cap, 6), spots)
    return s


def _toadstool(s: Sprite, x: float, foot: float, k: float, cap: Color, spots: bool) -> None:
    rng, rim, half = s.rng, foot - 0.52 * k, float(s.rng.uniform(0.36, 0.46)) * k
    top = rim - float(rng.uniform(0.3, 0.44)) * k
    stem, thick = (238, 228, 206), 0.085 * k
    s.blob(
        [
            (x - thick, rim),
            (x - thick * 0.85, rim + 0.2 * k),
            (x - thick * 1.5, foot - 0.02),
            (x, foot),
            (x + thick * 1.5, foot - 0.02),
            (x + thick * 0.85, rim + 0.2 * k),
            (x + thick, rim),
        ],
        stem,
        shade=0.3,
        round_=True,
        grain=0.1,
    )
    s.ellipse(x, rim + 0.005, half * 0.94, 0.075 * k, (214, 196, 164), shade=0.2)
    for gill in np.linspace(-0.85, 0.85, 13):
        s.line([(x + gill * half * 0.3, rim), (x + gill * half, rim + 0.05 * k)], 0.004, (184, 160, 126))
    s.poly(
        [
            (x - thick * 1.3, rim + 0.12 * k),
            (x + thick * 1.3, rim + 0.12 * k),
            (x + thick * 1.7, rim + 0.19 * k),
            (x - thick * 1.7, rim + 0.19 * k),
        ],
        (246, 238, 220),
        shade=0.25,
    )
    dome = [
        (x - half, rim + 0.02 * k),
        (x - half * 0.8, rim - (rim - top) * 0.58),
        (x - half * 0.3, top),
        (x + half * 0.3, top),
        (x + half * 0.8, rim - (rim - top) * 0.58),
        (x + half, rim + 0.02 * k),
        (x, rim + 0.035 * k),
    ]
    s.blob(dome, cap, shade=0.38, round_=True, grain=0.08)
    s.ellipse(
        x + s.lit * half * 0.35,
        top + (rim - top) * 0.25,
        half * 0.2,
        (rim - top) * 0.1,
        mix(cap, (255, 255, 255), 0.35),
        grain=0.02,
    )
    if spots:
        _spots(s, x, top, rim, half)


def _spots(s: Sprite, x: float, top: float, rim: float, half: float) -> None:
    """The white flecks of a fly agaric, kept inside the dome."""
    for _ in range(11):
        u, v = s.rng.uniform(-0.78, 0.78), s.rng.uniform(0.12, 0.88)
        if abs(u) < np.sqrt(max(0.0, 1 - (1 - v) ** 2)) * 0.82:
            s.dot(
                x + u * half,
                top + v * (rim - top),
                half * s.rng.uniform(0.06, 0.1),
                half * s.rng.uniform(0.05, 0.075),
                (250, 244, 234),
            )
