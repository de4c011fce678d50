"""Table of all import and export formats, FORMATS, with one file per format.

Start with format.py. Code without a format is in exchange/files/.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.formats.argilla import ARGILLA
from annotator.exchange.formats.bdd100k import BDD100K
from annotator.exchange.formats.camtrap_dp import CAMTRAP_DP
from annotator.exchange.formats.coco import COCO
from annotator.exchange.formats.coco_results import COCO_RESULTS
from annotator.exchange.formats.createml import CREATEML
from annotator.exchange.formats.croissant_source import CROISSANT
from annotator.exchange.formats.csv_table import CSV, TSV
from annotator.exchange.formats.cvat import CVAT
from annotator.exchange.formats.darwin import DARWIN
from annotator.exchange.formats.darwin_core import DARWIN_CORE
from annotator.exchange.formats.datumaro import DATUMARO
from annotator.exchange.formats.encord import ENCORD
from annotator.exchange.formats.excel import EXCEL
from annotator.exchange.formats.fiftyone import FIFTYONE
from annotator.exchange.formats.fiftyone_labels import FIFTYONE_LABELS
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.huggingface import HUGGINGFACE
from annotator.exchange.formats.imagefolder import IMAGEFOLDER
from annotator.exchange.formats.images_only import IMAGES
from annotator.exchange.formats.imaterialist import IMATERIALIST
from annotator.exchange.formats.json_lines import JSONL
from annotator.exchange.formats.json_records import RECORDS
from annotator.exchange.formats.keywords import KEYWORDS
from annotator.exchange.formats.label_studio import LABEL_STUDIO
from annotator.exchange.formats.labelbox import LABELBOX
from annotator.exchange.formats.labelme import LABELME
from annotator.exchange.formats.megadetector import MEGADETECTOR
from annotator.exchange.formats.numpy_folder import NUMPY, TORCH
from annotator.exchange.formats.nus_wide import NUS_WIDE
from annotator.exchange.formats.opendocument import OPENDOCUMENT
from annotator.exchange.formats.openimages import OPENIMAGES
from annotator.exchange.formats.parquet import PARQUET
from annotator.exchange.formats.prodigy import PRODIGY
from annotator.exchange.formats.sagemaker import SAGEMAKER
from annotator.exchange.formats.scale_ai import SCALE_AI
from annotator.exchange.formats.speciesnet import SPECIESNET
from annotator.exchange.formats.spml import SPML
from annotator.exchange.formats.superannotate import SUPERANNOTATE
from annotator.exchange.formats.supervisely import SUPERVISELY
from annotator.exchange.formats.timelapse import TIMELAPSE
from annotator.exchange.formats.vector_list import VECTOR_LIST
from annotator.exchange.formats.vertex_ai import VERTEX_AI
from annotator.exchange.formats.via import VIA
from annotator.exchange.formats.voc import VOC
from annotator.exchange.formats.vott import VOTT
from annotator.exchange.formats.webdataset import WEBDATASET
from annotator.exchange.formats.wildlife_insights import WILDLIFE_INSIGHTS
from annotator.exchange.formats.yolo import YOLO, YOLO_CLS
from spmll.plugins import find_plugins, load_plugin, warn_left_out

FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        CSV,
        TSV,
        JSONL,
        RECORDS,
        EXCEL,
        OPENDOCUMENT,
        PARQUET,
        NUMPY,
        TORCH,
        COCO,
        COCO_RESULTS,
        MEGADETECTOR,
        SPECIESNET,
        CAMTRAP_DP,
        TIMELAPSE,
        WILDLIFE_INSIGHTS,
        DARWIN_CORE,
        OPENIMAGES,
        VECTOR_LIST,
        NUS_WIDE,
        VOC,
        SPML,
        YOLO,
        YOLO_CLS,
        IMAGEFOLDER,
        IMAGES,
        KEYWORDS,
        CVAT,
        DATUMARO,
        FIFTYONE,
        FIFTYONE_LABELS,
        LABEL_STUDIO,
        LABELME,
        CREATEML,
        VIA,
        SUPERVISELY,
        VOTT,
        SAGEMAKER,
        LABELBOX,
        PRODIGY,
        ARGILLA,
        IMATERIALIST,
        DARWIN,
        SUPERANNOTATE,
        SCALE_AI,
        ENCORD,
        VERTEX_AI,
        BDD100K,
        HUGGINGFACE,
        WEBDATASET,
        CROISSANT,
    )
}
"""Name -> the format."""
ENTRY_POINT_GROUP = "annotator.formats"
"""The group of entry points that name further ones."""


def all_formats() -> dict[str, Format]:
    """Return all formats by name, those of this program first. Broken plug-ins are skipped with a warning."""
    return FORMATS | _load_plugin_formats()


@cache
def _load_plugin_formats() -> dict[str, Format]:
    loaded = {
        name: load_plugin(entry, Format) for name, entry in find_plugins(ENTRY_POINT_GROUP, tuple(FORMATS)).items()
    }
    return {
        name: replace(format_, name=name, recognize=_guard_recognize(name, format_.recognize))
        for name, format_ in loaded.items()
        if format_ is not None
    }


def _guard_recognize(name: str, recognize: Callable[[Path], str | None] | None) -> Callable[[Path], str | None] | None:
    """Wrap a plug-in's `recognize`, which runs for every source, so that its errors become warnings."""
    if recognize is None:
        return None

    def recognize_safely(path: Path) -> str | None:
        try:
            return recognize(path)
        except Exception as error:  # whatever the plug-in's own code raises
            warn_left_out(
                f"{ENTRY_POINT_GROUP}: {name!r} cannot say whether {path} is its own, and is not used for it: {error}"
            )
            return None

    return recognize_safely


def find_format(name: str, operation: str = "") -> Format:
    """Return the format with this name.

    Args:
        name: Such as "coco".
        operation: "read", "write" or "".

    Returns:
        The format.

    Raises:
        AnnotatorError: No such format. Lists alternatives.
    """
    formats = {key: format_ for key, format_ in all_formats().items() if not operation or getattr(format_, operation)}
    if name not in formats:
        raise AnnotatorError(f"No format is called {name!r}. {did_you_mean(name, formats, len(formats))}")
    return formats[name]


def match_formats(path: Path) -> list[tuple[Format, str]]:
    """Return (format, reason) for each format that recognizes a source, a general one only if no other does."""
    readable = (format_ for format_ in all_formats().values() if format_.read and format_.recognize)
    found = [(format_, why) for format_ in readable if format_.recognize and (why := format_.recognize(path))]
    special = [(format_, why) for format_, why in found if not format_.is_general]
    return special or found[:1]
