"""Generated charts, chessboards, lines of writing and sound spectrograms."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from annotator.benchmark.collections.shapes import pick_random_color
from annotator.benchmark.collections.small_objects import IMAGE_SIDE_PIXELS

Random = np.random.Generator


def _draw_lines(axes, rng: Random) -> None:
    axes.plot(rng.normal(size=(30, int(rng.integers(1, 4)))).cumsum(0))


def _draw_bars(axes, rng: Random) -> None:
    heights = rng.uniform(0.1, 1, int(rng.integers(3, 9)))
    axes.bar(range(len(heights)), heights, color=rng.random(3))


def _draw_histogram(axes, rng: Random) -> None:
    axes.hist(rng.normal(size=300), bins=int(rng.integers(12, 30)), color=rng.random(3), edgecolor="black")


def _draw_scatter(axes, rng: Random) -> None:
    axes.scatter(*rng.normal(size=(2, int(rng.integers(15, 80)))), s=float(rng.uniform(6, 40)), color=rng.random(3))


def _draw_pie(axes, rng: Random) -> None:
    axes.pie(rng.random(int(rng.integers(3, 7))) + 0.1)


def _draw_heat_map(axes, rng: Random) -> None:
    axes.imshow(rng.random((int(rng.integers(5, 12)), 8)), cmap=str(rng.choice(["viridis", "magma", "coolwarm"])))


def _draw_box_plot(axes, rng: Random) -> None:
    axes.boxplot(list(rng.normal(size=(int(rng.integers(2, 6)), 40))))


def _draw_area(axes, rng: Random) -> None:
    axes.stackplot(range(20), np.abs(rng.normal(size=(3, 20)).cumsum(1)) + 1)


def _draw_contour(axes, rng: Random) -> None:
    x, y = np.meshgrid(np.linspace(-2, 2, 30), np.linspace(-2, 2, 30))
    axes.contour(np.sin(x * rng.uniform(0.5, 2)) + np.cos(y * rng.uniform(0.5, 2)), levels=8)


def _draw_arrows(axes, rng: Random) -> None:
    x, y = np.meshgrid(np.arange(8), np.arange(8))
    axes.quiver(x, y, np.sin(x * rng.uniform(0.2, 1)), np.cos(y * rng.uniform(0.2, 1)))


def _draw_steps(axes, rng: Random) -> None:
    axes.step(range(25), rng.normal(size=25).cumsum(), where="mid", color=rng.random(3))


def _draw_stems(axes, rng: Random) -> None:
    axes.stem(range(14), rng.normal(size=14))


CHART_DRAWERS: dict[str, Callable] = {
    "line": _draw_lines, "bar": _draw_bars, "histogram": _draw_histogram, "scatter": _draw_scatter,
    "pie": _draw_pie, "heat map": _draw_heat_map,
    "box plot": _draw_box_plot, "area": _draw_area, "contour": _draw_contour, "arrows": _draw_arrows,
    "steps": _draw_steps, "stems": _draw_stems,
}  # fmt: skip


def draw_charts(rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw a sheet of one, two or four charts, and return it with their kinds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    down, across = ((1, 1), (1, 2), (2, 1), (2, 2))[int(rng.integers(4))]
    red, green, blue = rng.uniform(0.85, 1, 3).tolist()
    figure = Figure(
        (IMAGE_SIDE_PIXELS / 100, IMAGE_SIDE_PIXELS / 100), dpi=100, layout="constrained", facecolor=(red, green, blue)
    )
    canvas = FigureCanvasAgg(figure)
    shown: list[str] = []
    for axes in figure.subplots(down, across, squeeze=False).flat:
        name = str(rng.choice(list(CHART_DRAWERS)))
        CHART_DRAWERS[name](axes, rng)
        axes.grid(bool(rng.random() < 0.4))
        if rng.random() < 0.5:
            axes.set_axis_off()
        shown += [name] if name not in shown else []
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()), shown


CHESSMAN_SIGNS = {"king": "♚", "queen": "♛", "rook": "♜", "bishop": "♝", "knight": "♞", "pawn": "♟"}
CHESSMAN_CLASSES = tuple(f"{colour} {man}" for man in CHESSMAN_SIGNS for colour in ("white", "black"))
# of a colour, on average
MEAN_CHESSMEN = {"king": 1.0, "queen": 0.45, "rook": 0.9, "bishop": 0.7, "knight": 0.6, "pawn": 2.5}


def draw_chessboard(rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw a board with about six of twelve kinds of chessmen, and return it with their names."""
    light, dark = pick_random_color(rng, 190, 250), pick_random_color(rng, 90, 160)
    image = Image.new("RGB", (IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), light)
    draw, square = ImageDraw.Draw(image), IMAGE_SIDE_PIXELS // 8
    for place in range(64):
        if (place // 8 + place) % 2:
            x, y = place % 8 * square, place // 8 * square
            draw.rectangle((x, y, x + square, y + square), dark)
    squares = iter(rng.permutation(64).tolist())
    shown = []
    for man, mean in MEAN_CHESSMEN.items():
        for colour in ("white", "black"):
            count = 1 if man == "king" and rng.random() < 0.7 else min(int(rng.poisson(mean * 0.7)), 5)
            shown += [f"{colour} {man}"] * min(count, 1)
            for place in (next(squares) for _ in range(count)):
                fill, edge = ((250, 250, 245), (20, 20, 20)) if colour == "white" else ((25, 25, 25), (230, 230, 225))
                middle = (place % 8 * square + square // 2, place // 8 * square + square // 2)
                draw.text(
                    middle,
                    CHESSMAN_SIGNS[man],
                    fill,
                    font=_load_font(46),
                    anchor="mm",
                    stroke_width=1,
                    stroke_fill=edge,
                )
    return (image, shown) if shown else draw_chessboard(rng)


SCRIPT_CODE_POINTS = {
    "Latin": range(0x61, 0x7B), "Greek": range(0x3B1, 0x3CA), "Cyrillic": range(0x430, 0x450),
    "Armenian": range(0x561, 0x587), "Georgian": range(0x10D0, 0x10F1), "Hebrew": range(0x5D0, 0x5EB),
    "Arabic": range(0x628, 0x63B), "Braille": range(0x2801, 0x28FF), "operators": range(0x2200, 0x2270),
    "arrows": range(0x2190, 0x21CF), "syllabics": range(0x1401, 0x1450), "Tifinagh": range(0x2D30, 0x2D66),
}  # fmt: skip


def draw_scripts(rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw lines of writing in one to four of twelve scripts, and return the image with their names."""
    weights = np.arange(1, len(SCRIPT_CODE_POINTS) + 1) ** -0.5
    count = min(1 + int(rng.poisson(0.8)), 4)
    shown = [
        str(name) for name in rng.choice(list(SCRIPT_CODE_POINTS), count, replace=False, p=weights / weights.sum())
    ]
    is_dark = rng.random() < 0.3
    ground, ink = pick_random_color(rng, 200, 256), pick_random_color(rng, 0, 90)
    image = Image.new("RGB", (IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), ink if is_dark else ground)
    draw, size = ImageDraw.Draw(image), int(rng.integers(18, 44))
    lines = max(count, int(IMAGE_SIDE_PIXELS // (size * 1.6)))
    for number in range(lines):
        signs = list(SCRIPT_CODE_POINTS[shown[number * count // lines]])
        words = ["".join(map(chr, rng.choice(signs, int(rng.integers(2, 9))))) for _ in range(8)]
        at = (int(rng.integers(6, 30)), 8 + number * size * 1.6)
        draw.text(at, " ".join(words), ground if is_dark else ink, font=_load_font(size))
    return image.rotate(float(rng.uniform(-6, 6)), Image.Resampling.BICUBIC), shown


SOUND_NAMES = ("hum", "harmonics", "rising", "falling", "warble", "clicks", "band", "pulses", "echo")
SAMPLES_PER_SECOND, RECORDING_SAMPLES = 8000, 16384  # samples a second, and of a recording


def draw_spectrogram(rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw the spectrogram of one to four sounds in noise, and return it with their names."""
    from matplotlib import colormaps
    from scipy.signal import stft

    shown = [str(name) for name in rng.choice(SOUND_NAMES, min(1 + int(rng.poisson(0.9)), 4), replace=False)]
    heard = rng.normal(0, float(rng.uniform(0.2, 1.0)), RECORDING_SAMPLES) + sum(
        _make_sound(name, rng) for name in shown
    )
    _, _, spectrum = stft(heard, SAMPLES_PER_SECOND, nperseg=256, noverlap=192)
    level = np.log(np.abs(spectrum[::-1]) + 1e-3)
    low, high = np.quantile(level, [0.1, 0.998])
    colors = colormaps[str(rng.choice(["viridis", "magma", "gray", "bone"]))](((level - low) / (high - low)).clip(0, 1))
    image = Image.fromarray((colors[..., :3] * 255).astype(np.uint8))
    return image.resize((IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), Image.Resampling.BICUBIC), shown


def _make_sound(name: str, rng: Random) -> np.ndarray:
    time = np.arange(RECORDING_SAMPLES) / SAMPLES_PER_SECOND
    begin, length = rng.uniform(0, 0.9), rng.uniform(0.5, 1.1)
    during = (time > begin) & (time < begin + length)
    pitch = rng.uniform(400, 2200)
    phase = 2 * np.pi * pitch * time
    if name == "hum":
        return 1.2 * np.sin(phase / 4)
    if name == "harmonics":
        return during * sum(np.sin(phase / 3 * times) / times**0.5 for times in range(1, 7))
    if name in ("rising", "falling"):
        sweep = rng.uniform(500, 1400) * (1 if name == "rising" else -1)
        start = pitch if name == "rising" else pitch + 1500
        return 1.5 * during * np.sin(2 * np.pi * (start * time + sweep * (time - begin) ** 2))
    if name == "warble":
        return 1.5 * during * np.sin(phase + 60 * np.sin(2 * np.pi * rng.uniform(4, 9) * time))
    if name == "clicks":
        beats = np.zeros(RECORDING_SAMPLES)
        beats[rng.integers(0, RECORDING_SAMPLES, int(rng.integers(5, 15)))] = 60
        return beats
    if name == "band":
        return (
            3
            * during
            * np.convolve(rng.normal(size=RECORDING_SAMPLES), np.hanning(24) * np.cos(np.arange(24) * 1.4), "same")
            / 2
        )
    if name == "pulses":
        return 1.5 * (np.sin(2 * np.pi * rng.uniform(5, 11) * time) > 0.5) * np.sin(phase)
    call = np.zeros(RECORDING_SAMPLES)
    for number in range(5):
        place = int((begin / 2 + 0.22 * number) * SAMPLES_PER_SECOND)
        part = min(500, max(RECORDING_SAMPLES - place, 0))
        call[place : place + part] += 0.6**number * 4 * np.sin(phase[:part] * 1.3) * np.hanning(500)[:part]
    return call


@cache
def _load_font(size: int) -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
