"""Kinds of image files by suffix: supported, supported by an extra, or not.

Suffixes select files in a folder, but content decides decoding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from PIL import features

from annotator.humanize import format_count


@dataclass(frozen=True)
class PictureKind:
    """A kind of image files without built-in support."""

    name: str
    # lowercase suffixes
    endings: frozenset[str]
    # module that reads it, or ""
    package: str
    # what to do without support
    advice: str

    @property
    def is_read(self) -> bool:
        return bool(self.package) and find_spec(self.package) is not None


def _advise_extra(extra: str) -> str:
    return f'pip install "multilabel-annotator[{extra}]" reads them; give the same command again'


HEIC = PictureKind(
    "photos of phones (HEIC)", frozenset({".heic", ".heif", ".hif"}), "pillow_heif", _advise_extra("heic")
)
RAW = PictureKind(
    "raw files of cameras",
    frozenset({".cr2", ".cr3", ".nef", ".nrw", ".arw", ".sr2", ".dng", ".orf", ".raf", ".rw2", ".pef", ".srw"}),
    "rawpy",
    _advise_extra("raw"),
)
DICOM = PictureKind("medical images (DICOM)", frozenset({".dcm", ".dicom"}), "pydicom", _advise_extra("dicom"))
VIDEO = PictureKind(
    "videos",
    frozenset({".mp4", ".avi", ".mov", ".mkv", ".m4v", ".mts", ".m2ts", ".3gp", ".wmv", ".webm", ".mpg", ".mpeg"}),
    "",
    "frames are images, such as one a second: ffmpeg -i VIDEO.mp4 -vf fps=1 frames/VIDEO_%05d.jpg",
)
OTHER_FORMATS = PictureKind(
    "pictures of formats that are not read",
    frozenset({".svg", ".psd", ".eps", ".exr", ".hdr", ".jxl", ".tga", ".pnm", ".ppm", ".pgm", ".nii", ".fits"}),
    "",
    "save them as PNG or JPEG",
)
PICTURE_KINDS = (HEIC, RAW, DICOM, VIDEO, OTHER_FORMATS)
_KIND_BY_ENDING = {ending: kind for kind in PICTURE_KINDS for ending in kind.endings}

# that Pillow reads where it was built so
_OPTIONAL_ENDINGS = {"avif": (".avif",), "jpg_2000": (".jp2", ".j2k", ".j2c", ".jpf", ".jpx")}
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
    | {ending for feature, endings in _OPTIONAL_ENDINGS.items() if features.check(feature) for ending in endings}
    | {ending for kind in PICTURE_KINDS if kind.is_read for ending in kind.endings}
)


def get_ending(path: str) -> str:
    """Return a path's lowercase suffix with its dot, or ""."""
    name = path.rstrip("/").rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if dot > 0 else ""


def looks_like_image(path: str) -> bool:
    return get_ending(path) in IMAGE_SUFFIXES


def get_unread_ending(path: str) -> str:
    """Return the suffix of an unsupported image file, or ""."""
    ending = get_ending(path)
    return ending if ending in _KIND_BY_ENDING and ending not in IMAGE_SUFFIXES else ""


def get_advice(path: str) -> str:
    """Return "kind: advice" for an unsupported image file, or ""."""
    ending = get_unread_ending(path)
    return f"{_KIND_BY_ENDING[ending].name} are not read here: {_KIND_BY_ENDING[ending].advice}" if ending else ""


def describe_unread(counts: Mapping[str, int]) -> Sequence[str]:
    """Return one sentence with advice per kind of skipped image files."""
    said: list[str] = []
    for kind in PICTURE_KINDS:
        these = {ending: counts[ending] for ending in sorted(kind.endings) if counts.get(ending)}
        if these:
            listed = ", ".join(f"{count:,} {ending}" for ending, count in these.items())
            files = format_count(sum(these.values()), "file")
            said.append(f"{files} left out, {kind.name}: {listed}. What helps: {kind.advice}.")
    return said
