"""A folder of images in events, as camera traps take them, made of photos whose truth is known.

Every place has a background, a strongly blurred photo on which nothing can be made out, and its own preferences for
classes and hours. An event is a few frames, seconds apart: a photo, cut a little differently, moves over the
background while the light changes. Some events are empty, and in some a second photo shows in one frame only. The
truth of a frame is what its photos show.
"""

import csv
import datetime
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

from annotator.benchmark.finish.sets import TestSet

FRAME_WIDTH, FRAME_HEIGHT = 320, 240  # pixels of a frame
# height of a photo, and of the second one, in heights of the frame
LARGE_PHOTO_HEIGHTS, SMALL_PHOTO_HEIGHTS = ((0.75, 0.95), (0.4, 0.55))
MAX_CUT_SHARE = 0.12  # of a photo's width and height, at most, that a frame cuts off on each side
MAX_STEP_SHARE = 0.06  # of the frame's width that a photo moves from frame to frame, at most
FRAME_BRIGHTNESS = (0.8, 1.2)  # brightness of a frame, times that of the event
NIGHT_BRIGHTNESS = 0.55  # brightness of an event at night
SECONDS_APART = (1, 4)  # between frames
MINUTES_APART = (5, 240)  # between events of a place
PREFERENCE_SPREAD = 1.5  # spread of the log of how much more often a place, or an hour, has one class than another
DAY_PARTS = 4  # parts of the day that have preferences of their own
FIRST_EVENT_TIME = datetime.datetime(2024, 5, 1, 0, 0, 0)


@dataclass(frozen=True)
class Recipe:
    """What the folder holds.

    Attributes:
        events: The number of events.
        frames: Images of each.
        empty: Share of events that show nothing.
        second: Share of the others with a second photo in one frame.
        places: The number of places.
        seed: Of all random draws.
    """

    events: int = 160
    frames: int = 5
    empty: float = 0.25
    second: float = 0.2
    places: int = 8
    seed: int = 0


def make_event_set(folder: Path, photos: TestSet, recipe: Recipe) -> Path:
    """Write the images into `folder`, and return a CSV `image,labels` beside it of all that they show.

    Args:
        folder: The folder, made if missing: a folder for each place, and times in the names of files.
        photos: Photos, of which each is used for one event, and again once all are.
        recipe: What is made.
    """
    chance = np.random.default_rng([recipe.seed, 7])
    camera = _Cameras(photos, recipe, chance)
    rows = []
    for number in range(recipe.events):
        place = number % recipe.places
        time = camera.advance_clock(place)
        is_empty = chance.random() < recipe.empty
        main = None if is_empty else camera.draw_photo(place, time.hour, once=True)
        seconds_in = int(chance.integers(recipe.frames)) if chance.random() < recipe.second else None
        second = None if main is None or seconds_in is None else camera.draw_photo(place, time.hour, once=False)
        is_night = not 6 <= time.hour < 20
        pasted = None if main is None else _PastedPhoto.place_photo(photos.images[main], LARGE_PHOTO_HEIGHTS, chance)
        for frame in range(recipe.frames):
            image, seen = camera.backgrounds[place].copy(), []
            if main is not None and pasted:
                pasted.paste_into(image, frame, chance)
                seen.append(main)
            if second is not None and frame == seconds_in:
                _PastedPhoto.place_photo(photos.images[second], SMALL_PHOTO_HEIGHTS, chance).paste_into(
                    image, frame, chance
                )
                seen.append(second)
            light = (NIGHT_BRIGHTNESS if is_night else 1.0) * float(chance.uniform(*FRAME_BRIGHTNESS))
            name = f"place{place + 1:02d}/IMG_{time:%Y%m%d_%H%M%S}.jpg"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            ImageEnhance.Brightness(image).enhance(light).save(folder / name, quality=85)
            shown = np.atleast_1d(photos.truth[seen].any(axis=0))
            rows.append((name, "|".join(name for name, has in zip(photos.classes, shown, strict=True) if has)))
            time += datetime.timedelta(seconds=int(chance.integers(*SECONDS_APART)))
    table = folder.with_name(f"{folder.name}.csv")
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("image", "labels"), *rows])
    return table


class _Cameras:
    """The places: what each prefers, its background and its clock.

    Attributes:
        backgrounds: The background of each place.
    """

    def __init__(self, photos: TestSet, recipe: Recipe, chance: np.random.Generator):
        self.photos, self.chance = photos, chance
        classes = len(photos.classes)
        self.place_preferences = chance.normal(0, PREFERENCE_SPREAD, (recipe.places, classes))
        self.hour_preferences = chance.normal(0, PREFERENCE_SPREAD, (DAY_PARTS, classes))
        self.unused = np.ones(len(photos.images), bool)
        starts = chance.integers(0, MINUTES_APART[1], recipe.places).tolist()
        self.clocks = [FIRST_EVENT_TIME + datetime.timedelta(minutes=start) for start in starts]
        drawn = chance.integers(0, len(photos.images), recipe.places).tolist()
        self.backgrounds = [_blur_photo(photos.images[row]) for row in drawn]

    def advance_clock(self, place: int) -> datetime.datetime:
        """Return when the next event of a place begins."""
        self.clocks[place] += datetime.timedelta(minutes=int(self.chance.integers(*MINUTES_APART)))
        return self.clocks[place]

    def draw_photo(self, place: int, hour: int, *, once: bool) -> int:
        """Return a photo: those whose classes the place and the hour prefer are likelier.

        Args:
            place: The place.
            hour: The hour, 0 to 23.
            once: Only photos that were not drawn so before, until all were.
        """
        liked = self.place_preferences[place] + self.hour_preferences[hour * DAY_PARTS // 24]
        weight = np.exp((self.photos.truth * liked).sum(1) / np.maximum(1, self.photos.truth.sum(1)))
        if once and not self.unused.any():
            self.unused[:] = True
        weight *= self.unused | (not once)
        row = int(self.chance.choice(len(weight), p=weight / weight.sum()))
        self.unused[row] &= not once
        return row


@dataclass
class _PastedPhoto:
    """A photo on the background of an event.

    Attributes:
        photo: The photo, as large as on the frame.
        left: Where it is, as a share of the free width.
        top: Where it is, as a share of the free height.
        step: How far it moves to the right in a frame, as a share of the free width.
    """

    photo: Image.Image
    left: float
    top: float
    step: float

    @classmethod
    def place_photo(cls, path: Path, heights: tuple[float, float], chance: np.random.Generator) -> "_PastedPhoto":
        """Place a photo at random, with a height between two shares of the frame's."""
        photo = Image.open(path).convert("RGB")
        height = max(8, round(FRAME_HEIGHT * float(chance.uniform(*heights))))
        width = min(FRAME_WIDTH, max(8, round(photo.width * height / photo.height)))
        step = float(chance.uniform(-MAX_STEP_SHARE, MAX_STEP_SHARE)) * FRAME_WIDTH / max(1, FRAME_WIDTH - width)
        left, top = chance.random(2).tolist()
        return cls(photo.resize((width, height)), left, top, step)

    def paste_into(self, image: Image.Image, frame: int, chance: np.random.Generator) -> None:
        """Paste the photo as it is in this frame."""
        width, height = self.photo.size
        cut = (chance.random(4) * MAX_CUT_SHARE * np.array([width, height, width, height])).astype(int).tolist()
        part = self.photo.crop((cut[0], cut[1], width - cut[2], height - cut[3]))
        left = min(1.0, max(0.0, self.left + frame * self.step))
        place = (int(left * max(0, FRAME_WIDTH - width)) + cut[0], int(self.top * (FRAME_HEIGHT - height)) + cut[1])
        image.paste(part, place)


def _blur_photo(path: Path) -> Image.Image:
    """Return a photo blurred so strongly that only its colors are left."""
    photo = Image.open(path).convert("RGB").resize((FRAME_WIDTH, FRAME_HEIGHT))
    return photo.filter(ImageFilter.GaussianBlur(FRAME_WIDTH / 8))
