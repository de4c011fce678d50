"""FiftyOne's own format: metadata.json, samples.json and data/ (FiftyOneDataset, https://docs.voxel51.com).

The answers are the fields `positive_labels`, `negative_labels` and `unsure_labels` (Classifications), the first two
named as FiftyOne names those of Open Images; each label has the attributes annotator, decided_at and source.
`predictions` has the model's probabilities as confidences. The files have version 1.0 of FiftyOne, which all later
versions migrate.

When read, a label with a confidence is a score and a label without is present, except in the three fields above,
whose names give the state.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.inside import file_inside
from annotator.exchange.files.json_stream import pieces, starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.extras import Answers, Extras, Origins, answers, extras, given_by
from annotator.exchange.formats.shared.split_names import SPLITS
from annotator.exchange.formats.shared.times import seconds_of
from annotator.exchange.formats.view import Block, Output, View
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

VERSION = "1.0.0"
OURS = "multilabel_annotator"
FIELDS = {"positive_labels": PRESENT, "negative_labels": ABSENT, "unsure_labels": UNSURE}
LARGEST = 64 << 20  # bytes of metadata.json
_KINDS = ("Classification", "Classifications", "Detection", "Detections", "Polyline", "Polylines")


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


_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_labels = msgspec.json.Decoder(_Labels | None)
_texts = msgspec.json.Decoder(list[str] | None)
_extras = msgspec.json.Decoder(Extras | None)


def recognise(path: Path) -> str | None:
    """Return why a path is FiftyOne, or None: a folder with samples.json, and metadata.json with sample_fields."""
    if (path / "samples.json").is_file() and b'"sample_fields"' in starts_with(path / "metadata.json"):
        return "FiftyOne's format: a folder with metadata.json and samples.json"
    return None


def read(path: Path, problems: Problems) -> Contents:
    """Return the samples as items; a place is samples[index].

    Raises:
        AnnotatorError: metadata.json lists no fields, or a file is not JSON.
    """
    file = path / "metadata.json"
    try:
        if file.stat().st_size > LARGEST:
            raise AnnotatorError(f"{file} has more than {LARGEST >> 20} MB. Is it the right file?")
        with open_file(file) as opened:
            metadata = msgspec.json.decode(opened.read(), type=_Metadata)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AnnotatorError(f"{file} cannot be read as FiftyOne's metadata: {error}.") from error
    fields = [
        field.name for field in metadata.sample_fields if (field.embedded_doc_type or "").rpartition(".")[2] in _KINDS
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
        _items(path, fields, problems),
        folder=path,
        place="sample",
        said=said,
    )


def _items(path: Path, fields: list[str], problems: Problems) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
    for piece in pieces(path / "samples.json", wanted=lambda key: key == "samples"):
        for index, sample in piece.decode(decoder, problems):
            try:
                yield _item(path, sample, fields, f"samples[{index}]")
            except (ValueError, msgspec.MsgspecError, RecursionError) as error:
                problems.add(f"samples[{index}]: {error}")


def _item(path: Path, sample: dict[str, msgspec.Raw], fields: list[str], place: str) -> Item:
    kept = _extras.decode(sample[OURS]) if OURS in sample else None
    file = msgspec.json.decode(sample.get("filepath", b'""'), type=str)
    if not file:
        raise ValueError("it has no filepath")
    origins: Origins = {}
    scores: dict[str, float] = {}
    answered = False
    for field in fields:
        labels = _labels.decode(sample[field]) if field in sample else None
        if labels is None:
            continue
        state = FIELDS.get(field)
        if state is None and labels.confidence is None and field != "predictions":
            answered = True
        for label in _each(labels):
            if label.label is None:
                continue
            if label.confidence is not None and state is None:
                scores[label.label] = label.confidence
            elif state is not None or field != "predictions":
                origin = (_text(label.annotator), seconds_of(_text(label.decided_at)), _text(label.source))
                origins[label.label, PRESENT if state is None else state] = origin
                answered = True
    written = kept.origins() if kept else {}
    origins |= {cell: written[cell] for cell in origins if cell in written}
    tags = _texts.decode(sample["tags"]) or [] if "tags" in sample else []
    return Item(
        (kept.image if kept else "") or file,
        place,
        given_by(origins),
        scores=scores,
        file=file_inside(path, file),
        sha256=kept.sha256 if kept else "",
        attributes=kept.facts() if kept else _facts(tags),
        remarks=kept.remarks() if kept else (),
        answered=answered,
    )


def _each(labels: _Labels) -> list[_Label]:
    several = labels.classifications or labels.detections or labels.polylines
    return several if several is not None else [labels]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _facts(tags: list[str]) -> dict[str, str]:
    splits = [tag for tag in tags if tag.lower() in SPLITS]
    others = ", ".join(tag for tag in tags if tag not in splits)
    return ({"split": splits[0]} if splits else {}) | ({"tags": others} if others else {})


def write(view: View, output: Output) -> None:
    """Write metadata.json, samples.json, and the images if the export has images."""
    names = [class_.name for class_ in view.classes]
    with output.text("metadata.json") as file:
        json.dump(_metadata(names), file, ensure_ascii=False)
    quoted = [msgspec.json.encode(name) for name in names]
    with output.binary("samples.json") as file:
        between = b'{"samples": [\n'
        for block in view.blocks():
            who: dict[tuple[int, int, str], bytes] = {}  # (source, annotator, time) -> JSON with these attributes
            samples = [_sample(view, names, quoted, block, row, given, who) for row, given in enumerate(answers(block))]
            for image, name in zip(block.images, block.files, strict=True):
                output.image(image, f"data/{name}")
            file.write(between + b",\n".join(samples))
            between = b",\n"
        file.write(b"\n]}\n" if between == b",\n" else between + b"]}\n")


def _sample(
    view: View,
    names: list[str],
    quoted: list[bytes],
    block: Block,
    row: int,
    given: Answers,
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
        by_state[state].append(_label(key, column, quoted[column], words))
    kept = extras(view, names, block, row, given)
    columns = {name: column for column, name in enumerate(names)} if kept.probabilities else {}
    guesses = [
        _label(key, len(names) + columns[name], quoted[columns[name]], b'"confidence":%r}' % number)
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
        OURS: kept,
    }
    fields = zip((*FIELDS, "predictions"), (*by_state[1:], guesses), strict=True)
    rest = b"".join(
        b',"%s":{"_cls":"Classifications","classifications":[%s]}' % (name.encode(), b",".join(labels))
        for name, labels in fields
    )
    return msgspec.json.encode(head)[:-1] + rest + b"}"


def _label(key: bytes, number: int, name: bytes, attributes: bytes) -> bytes:
    """Return a label as JSON. number: position of the label in its sample; key: 16 hexadecimal digits of the sample."""
    start = b'{"_id":{"$oid":"%s%08x"},"_cls":"Classification","tags":[],"label":%s,' % (key, number, name)
    return start + attributes


def _metadata(names: list[str]) -> dict[str, Any]:
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
        *(labels(name, *origin) for name in FIELDS),
        labels("predictions"),
        field(OURS, "DictField"),
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
    recognise,
    read,
    write,
    Lost(unsure=False, provenance=False),
    "link",
)
