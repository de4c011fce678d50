"""FiftyOneDataset: metadata.json, samples.json and data/ (https://docs.voxel51.com), version 1.0.

Answers are in `positive_labels`, `negative_labels` and `unsure_labels`, probabilities in `predictions`. A
label in another field means present, or is a score if it has a confidence.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.export_view import Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.embedded_extras import (
    Extras,
    ImageLabels,
    Origins,
    build_extras,
    iter_image_labels,
    to_imported_labels,
)
from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

VERSION = "1.0.0"
EXTRAS_FIELD = "multilabel_annotator"
STATE_BY_FIELD = {"positive_labels": PRESENT, "negative_labels": ABSENT, "unsure_labels": UNSURE}
MAX_METADATA_BYTES = 64 << 20  # bytes of metadata.json
_LABEL_TYPES = ("Classification", "Classifications", "Detection", "Detections", "Polyline", "Polylines")


class _Field(msgspec.Struct):
    name: str
    embedded_doc_type: str | None = None


class _Metadata(msgspec.Struct):
    sample_fields: list[_Field]
    default_classes: list[str] | None = None
    classes: dict[str, list[str]] | None = None


class _Label(msgspec.Struct):
    label: str | None = None
    confidence: float | None = None
    annotator: Any = None
    decided_at: Any = None
    source: Any = None


class _Labels(_Label):
    classifications: list[_Label] | None = None
    detections: list[_Label] | None = None
    polylines: list[_Label] | None = None


_LABELS_DECODER = msgspec.json.Decoder(_Labels | None)
_TEXTS_DECODER = msgspec.json.Decoder(list[str] | None)
_EXTRAS_DECODER = msgspec.json.Decoder(Extras | None)


def recognize(path: Path) -> str | None:
    if (path / "samples.json").is_file() and b'"sample_fields"' in read_start(path / "metadata.json"):
        return "FiftyOne's format: a folder with metadata.json and samples.json"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the samples as items. Raises AnnotatorError for missing fields or invalid JSON."""
    file = path / "metadata.json"
    try:
        if file.stat().st_size > MAX_METADATA_BYTES:
            raise AnnotatorError(f"{file} has more than {MAX_METADATA_BYTES >> 20} MB. Is it the right file?")
        with open_file(file) as opened:
            metadata = msgspec.json.decode(opened.read(), type=_Metadata)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AnnotatorError(f"{file} cannot be read as FiftyOne's metadata: {error}.") from error
    fields = [
        field.name
        for field in metadata.sample_fields
        if (field.embedded_doc_type or "").rpartition(".")[2] in _LABEL_TYPES
    ]
    listed = [
        *(metadata.default_classes or ()),
        *(name for names in (metadata.classes or {}).values() for name in names),
    ]
    said = [
        f"Labels are read from the fields {', '.join(fields) or '(there are none)'}: those without a confidence are "
        "present, those with one are scores; negative_labels are absent and unsure_labels unsure."
    ]
    return Contents(
        [(name, "") for name in dict.fromkeys(listed)],
        _read_items(path, fields, problems),
        folder=path,
        place="sample",
        sentences=said,
    )


def _read_items(path: Path, fields: list[str], problems: Problems) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
    for piece in read_pieces(path / "samples.json", wanted=lambda key: key == "samples"):
        for index, sample in piece.decode(decoder, problems):
            try:
                yield _build_item(path, sample, fields, f"samples[{index}]")
            except (ValueError, msgspec.MsgspecError, RecursionError) as error:
                problems.add(f"samples[{index}]: {error}")


def _build_item(path: Path, sample: dict[str, msgspec.Raw], fields: list[str], place: str) -> Item:
    kept = _EXTRAS_DECODER.decode(sample[EXTRAS_FIELD]) if EXTRAS_FIELD in sample else None
    file = msgspec.json.decode(sample.get("filepath", b'""'), type=str)
    if not file:
        raise ValueError("it has no filepath")
    origins: Origins = {}
    scores: dict[str, float] = {}
    answered = False
    for field in fields:
        labels = _LABELS_DECODER.decode(sample[field]) if field in sample else None
        if labels is None:
            continue
        state = STATE_BY_FIELD.get(field)
        if state is None and labels.confidence is None and field != "predictions":
            answered = True
        for label in _flatten_labels(labels):
            if label.label is None:
                continue
            if label.confidence is not None and state is None:
                scores[label.label] = label.confidence
            elif state is not None or field != "predictions":
                origin = (
                    _text_or_empty(label.annotator),
                    parse_iso_time(_text_or_empty(label.decided_at)),
                    _text_or_empty(label.source),
                )
                origins[label.label, PRESENT if state is None else state] = origin
                answered = True
    written = kept.list_origins() if kept else {}
    origins |= {cell: written[cell] for cell in origins if cell in written}
    tags = _TEXTS_DECODER.decode(sample["tags"]) or [] if "tags" in sample else []
    return Item(
        (kept.image if kept else "") or file,
        place,
        to_imported_labels(origins),
        scores=scores,
        file=find_file_inside(path, file),
        sha256=kept.sha256 if kept else "",
        attributes=kept.list_attributes() if kept else _parse_tags(tags),
        remarks=kept.list_remarks() if kept else (),
        answered=answered,
    )


def _flatten_labels(labels: _Labels) -> list[_Label]:
    several = labels.classifications or labels.detections or labels.polylines
    return several if several is not None else [labels]


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parse_tags(tags: list[str]) -> dict[str, str]:
    splits = [tag for tag in tags if tag.lower() in SPLIT_FOLDER_NAMES]
    others = ", ".join(tag for tag in tags if tag not in splits)
    return ({"split": splits[0]} if splits else {}) | ({"tags": others} if others else {})


def write(view: View, output: Output) -> None:
    names = [class_.name for class_ in view.classes]
    with output.open_text("metadata.json") as file:
        json.dump(_build_metadata(names), file, ensure_ascii=False)
    quoted = [msgspec.json.encode(name) for name in names]
    with output.open_binary("samples.json") as file:
        between = b'{"samples": [\n'
        for block in view.blocks():
            who: dict[tuple[int, int, str], bytes] = {}  # (source, annotator, time) -> JSON with these attributes
            samples = [
                _encode_sample(view, names, quoted, block, row, given, who)
                for row, given in enumerate(iter_image_labels(block))
            ]
            for image, name in zip(block.images, block.files, strict=True):
                output.write_image(image, f"data/{name}")
            file.write(between + b",\n".join(samples))
            between = b",\n"
        file.write(b"\n]}\n" if between == b",\n" else between + b"]}\n")


def _encode_sample(
    view: View,
    names: list[str],
    quoted: list[bytes],
    block: Block,
    row: int,
    given: ImageLabels,
    who: dict[tuple[int, int, str], bytes],
) -> bytes:
    image = block.images[row]
    key = image.sha256[-16:].encode()
    by_state: tuple[list[bytes], ...] = ([], [], [], [])
    for column, state, source, annotator, time in zip(*given, strict=True):
        origin = (source, annotator, time)
        words = who.get(origin)
        if words is None:
            attributes = {"annotator": view.annotators[annotator], "decided_at": time, "source": view.sources[source]}
            words = who[origin] = msgspec.json.encode(attributes)[1:]
        by_state[state].append(_encode_label(key, column, quoted[column], words))
    kept = build_extras(view, names, block, row, given)
    columns = {name: column for column, name in enumerate(names)} if kept.probabilities else {}
    guesses = [
        _encode_label(key, len(names) + columns[name], quoted[columns[name]], b'"confidence":%r}' % number)
        for name, number in kept.probabilities.items()
    ]
    kept.probabilities = {}
    if not block.origins:
        kept.answers = []  # the attributes of each label say the same
    split = block.splits[row]
    head: dict[str, Any] = {
        "_id": {"$oid": image.sha256[-24:]},
        "filepath": f"data/{block.files[row]}",
        "tags": [split] if split else [],
        "metadata": {"_cls": "ImageMetadata", "width": image.width, "height": image.height},
        "_media_type": "image",
        "_rand": int(image.sha256[:8], 16) / 2**32,
        EXTRAS_FIELD: kept,
    }
    fields = zip((*STATE_BY_FIELD, "predictions"), (*by_state[1:], guesses), strict=True)
    rest = b"".join(
        b',"%s":{"_cls":"Classifications","classifications":[%s]}' % (name.encode(), b",".join(labels))
        for name, labels in fields
    )
    return msgspec.json.encode(head)[:-1] + rest + b"}"


def _encode_label(key: bytes, number: int, name: bytes, attributes: bytes) -> bytes:
    start = b'{"_id":{"$oid":"%s%08x"},"_cls":"Classification","tags":[],"label":%s,' % (key, number, name)
    return start + attributes


def _build_metadata(names: list[str]) -> dict[str, Any]:
    core = "fiftyone.core.fields."

    def field(name: str, kind: str, **more: Any) -> dict[str, Any]:
        of = {"embedded_doc_type": None, "subfield": None, "fields": [], "db_field": name}
        return {"name": name, "ftype": core + kind, **of, "description": None, "info": None, "read_only": False} | more

    def labels(name: str, *attributes: dict[str, Any]) -> dict[str, Any]:
        label = [
            field("id", "ObjectIdField", db_field="_id"),
            field("tags", "ListField", subfield=core + "StringField"),
            field("label", "StringField"),
            field("confidence", "FloatField"),
            field("logits", "VectorField"),
            *attributes,
        ]
        inside = field(
            "classifications",
            "ListField",
            subfield=core + "EmbeddedDocumentField",
            embedded_doc_type="fiftyone.core.labels.Classification",
            fields=label,
        )
        kind = "fiftyone.core.labels.Classifications"
        return field(
            name, "EmbeddedDocumentField", embedded_doc_type=kind, fields=[inside, field("logits", "VectorField")]
        )

    origin = [field(name, "StringField") for name in ("annotator", "decided_at", "source")]
    sizes = [field(name, "IntField") for name in ("size_bytes", "width", "height", "num_channels")]
    image = field(
        "metadata",
        "EmbeddedDocumentField",
        embedded_doc_type="fiftyone.core.metadata.ImageMetadata",
        fields=[*sizes[:1], field("mime_type", "StringField"), *sizes[1:]],
    )
    fields = [
        field("id", "ObjectIdField", db_field="_id"),
        field("filepath", "StringField"),
        field("tags", "ListField", subfield=core + "StringField"),
        image,
        field("created_at", "DateTimeField", read_only=True),
        field("last_modified_at", "DateTimeField", read_only=True),
        *(labels(name, *origin) for name in STATE_BY_FIELD),
        labels("predictions"),
        field(EXTRAS_FIELD, "DictField"),
    ]
    plain = {"tags": [], "info": {}, "classes": {}, "mask_targets": {}, "default_mask_targets": {}, "skeletons": {}}
    return {
        "name": "annotator",
        "version": VERSION,
        "media_type": "image",
        "group_media_types": {},
        "persistent": False,
        "sample_fields": fields,
        "default_classes": names,
        "app_config": {},
        **plain,
    }


FIFTYONE = Format(
    "fiftyone",
    "FiftyOne: its own folder with positive, negative and unsure labels, and predictions",
    "",
    recognize,
    read,
    write,
    FormatLosses(unsure=False, provenance=False),
    "link",
)
