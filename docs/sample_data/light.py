"""The hours of the day a scene can be painted in: sky, tint, shadows and haze of each."""

from dataclasses import dataclass, replace

from paint import Color


@dataclass(frozen=True)
class Light:
    """tint multiplies land and things; shadow is its strength, reach its length in heights of the thing."""

    name: str
    zenith: Color
    horizon: Color
    tint: tuple[float, float, float]
    shadow: float
    reach: float
    haze: float
    cloud: Color
    cloud_base: Color


LIGHTS = (
    Light(
        "noon", (84, 152, 218), (206, 230, 242), (1.02, 1.0, 0.96), 0.42, 0.45, 0.30, (255, 255, 252), (196, 208, 222)
    ),
    Light(
        "golden",
        (118, 152, 200),
        (255, 208, 142),
        (1.12, 0.98, 0.80),
        0.46,
        1.3,
        0.45,
        (255, 236, 206),
        (226, 170, 146),
    ),
    Light(
        "overcast",
        (160, 172, 184),
        (216, 220, 222),
        (0.90, 0.94, 0.98),
        0.18,
        0.15,
        0.50,
        (228, 231, 234),
        (168, 176, 186),
    ),
    Light("dusk", (58, 66, 124), (244, 158, 134), (0.82, 0.74, 0.92), 0.28, 0.9, 0.50, (232, 150, 150), (112, 92, 140)),
    Light(
        "mist", (184, 202, 212), (246, 238, 222), (0.98, 0.97, 0.95), 0.22, 0.6, 0.75, (250, 248, 244), (214, 218, 222)
    ),
)
CHANCES = (0.36, 0.24, 0.15, 0.14, 0.11)


def over_snow(light: Light) -> Light:
    """Snow shows every tint: half of it is enough, or a golden hour turns it to sand."""
    return replace(light, tint=tuple((1 + channel) / 2 for channel in light.tint))


def tinted(colour: Color, light: Light) -> Color:
    return tuple(int(min(255, c * k)) for c, k in zip(colour, light.tint, strict=True))
