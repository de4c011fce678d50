"""The Croissant 1.1 description of an export, with the responsible AI vocabulary (RAI 1.0).

Spec: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html and croissant-rai-spec.html. The RAI fields
about annotation come from the data card. A figure that no audit has measured is left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from annotator.exchange.croissant.croissant_facts import CREATOR_KEYS, FACT_FIELDS, REQUIRED_FACTS, is_version
from annotator.exchange.formats.shared.croissant_names import (
    CLASS_SET_ID,
    CROISSANT_URL_PREFIX,
    CROISSANT_VERSION_URL,
    IMAGE_SET_ID,
    RAI_VERSION_URL,
    RECORDS_KEY,
    SPLIT_SET_ID,
    STATE_FIELDS,
)
from annotator.humanize import format_count
from annotator.records import FILL_SOURCES, SOURCES
from annotator.store.pictures.files import compute_sha256

MAX_FILE_OBJECTS = 200  # label files with an entry of their own; the others are described by folder and ending
ENCODING_FORMATS = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".parquet": "application/x-parquet",
    ".xml": "application/xml",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".py": "text/x-python",
    ".tar": "application/x-tar",
    ".zip": "application/zip",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".bmp": "image/bmp",
}
UNKNOWN_ENCODING = "application/octet-stream"
SPLIT_URLS = {
    "train": "https://mlcommons.org/definitions/training_split",
    "val": "https://mlcommons.org/definitions/validation_split",
    "validation": "https://mlcommons.org/definitions/validation_split",
    "test": "https://mlcommons.org/definitions/test_split",
}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet "
            "format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex "
            "repeated replace samplingRate separator source subField transform"
        ).split()
    },
    "conformsTo": "dct:conformsTo",
    "cr": CROISSANT_URL_PREFIX,
    "rai": f"{CROISSANT_URL_PREFIX}RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "sc": "https://schema.org/",
}


@dataclass(frozen=True)
class ExportedFiles:
    """The files of an export."""

    # path by name of all files that are not images
    labels: Mapping[str, Path]
    # name of the records file, which is one of them
    records: str
    # number of image files by pattern, such as "images/*.jpg"
    image_patterns: Mapping[str, int] = field(default_factory=dict[str, int])


def build_document(
    card: Mapping[str, Any], facts: Mapping[str, Any], project_name: str, files: ExportedFiles
) -> dict[str, Any]:
    """Return the description of an export as JSON values.

    Args:
        card: Data card of the export.
        facts: Valid facts (croissant_facts.py). License and citation of the card replace theirs.
        project_name: Name of the data set where the facts have none.
        files: Files of the export. The description itself and the JSON data card, which has its hash, are not
            among them.
    """
    known = {key: value for key, value in facts.items() if key in FACT_FIELDS}
    known |= {key: card[name] for key, name in (("license", "license"), ("citeAs", "cite")) if card[name]}
    if "version" not in known and is_version(card["tag"] or ""):
        known["version"] = card["tag"]
    creators = known.pop("creator", [])
    measured = _measure_responsible_use(card)
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [CROISSANT_VERSION_URL, RAI_VERSION_URL],
        "name": project_name,
        "description": _describe_contents(card),
        "dateModified": card["made_at"],
        **known,
    }
    if creators:
        document["creator"] = [
            _format_creator(creator) for creator in (creators if isinstance(creators, list) else [creators])
        ]
    for key, sentences in measured.items():
        document[key] = [*sentences, *_list_texts(known.get(key))] if isinstance(sentences, list) else sentences
    document["distribution"] = [*_list_file_objects(files), *_list_file_sets(files)]
    document["recordSet"] = [_describe_classes(card), *_describe_splits(card), _describe_images(card, files.records)]
    return document


def find_missing_facts(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the recommended facts that a description lacks."""
    return [key for key in REQUIRED_FACTS if not document.get(key)]


def _list_texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def _format_creator(creator: Mapping[str, str]) -> dict[str, str]:
    return {"@type": creator["type"]} | {key: creator[key] for key in CREATOR_KEYS[1:] if creator.get(key)}


def _describe_contents(card: Mapping[str, Any]) -> str:
    names = [class_["name"] for class_ in card["classes"]]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
    return (
        f"{format_count(card['images'], 'image')} with a label for each of "
        f"{format_count(len(names), 'class', 'classes')}: present, absent, unsure or unanswered. Classes: {shown}."
    )


def _list_file_objects(files: ExportedFiles) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:FileObject",
            "@id": _choose_file_id(name, index, files),
            "name": name,
            "contentUrl": name,
            "contentSize": f"{files.labels[name].stat().st_size} B",
            "encodingFormat": find_encoding(name),
            "sha256": compute_sha256(files.labels[name]),
        }
        for index, name in enumerate(_select_listed_names(files))
    ]


def _choose_file_id(name: str, index: int, files: ExportedFiles) -> str:
    # An @id is a URI reference: names with spaces or other signs cannot be one.
    return "records" if name == files.records else f"file-{index + 1}"


def _select_listed_names(files: ExportedFiles) -> list[str]:
    others = [name for name in files.labels if name != files.records]
    return [files.records, *others[: MAX_FILE_OBJECTS - 1]]


def _list_file_sets(files: ExportedFiles) -> list[dict[str, Any]]:
    listed = set(_select_listed_names(files))
    rest = Counter(build_pattern(name) for name in files.labels if name not in listed)
    sets = [("label-files", rest), ("images", files.image_patterns)]
    return [
        {
            "@type": "cr:FileSet",
            "@id": f"{name}-{number}",
            "name": f"{name}-{number}",
            "description": f"{format_count(many, 'file')}.",
            "encodingFormat": encoding,
            "includes": includes,
        }
        for name, patterns in sets
        for number, (encoding, includes, many) in enumerate(_group_patterns(patterns), start=1)
    ]


def _group_patterns(patterns: Mapping[str, int]) -> list[tuple[str, list[str], int]]:
    """Return (encoding, patterns, number of files) per encoding."""
    encodings = dict.fromkeys(map(find_encoding, patterns))
    groups = {one: [pattern for pattern in patterns if find_encoding(pattern) == one] for one in encodings}
    return [(one, group, sum(patterns[pattern] for pattern in group)) for one, group in groups.items()]


def build_pattern(name: str) -> str:
    """Return a glob pattern for the files in the same top folder with the same ending, such as images/*.jpg."""
    path = PurePosixPath(name)
    ending = f"*{path.suffix}"
    # fnmatch gives * all characters, also slashes, so the top folder is enough.
    return f"{_escape_pattern(path.parts[0])}/{ending}" if len(path.parts) > 1 else ending


def _escape_pattern(text: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


def find_encoding(name: str) -> str:
    """Return the media type of a file by its ending."""
    return ENCODING_FORMATS.get(PurePosixPath(name).suffix.lower(), UNKNOWN_ENCODING)


def _describe_classes(card: Mapping[str, Any]) -> dict[str, Any]:
    fields = [_build_field(CLASS_SET_ID, name, about) for name, about in _CLASS_FIELDS.items()]
    rows = [
        {f"{CLASS_SET_ID}/name": class_["name"], f"{CLASS_SET_ID}/description": class_["description"]}
        for class_ in card["classes"]
    ]
    return _build_record_set(CLASS_SET_ID, "The classes, in their order.", "name", fields) | {"data": rows}


_CLASS_FIELDS = {"name": "Name of the class.", "description": "Its description, or empty."}


def _describe_splits(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not card["splits"]:
        return []
    fields = [
        _build_field(SPLIT_SET_ID, "name", "Name of the split."),
        _build_field(SPLIT_SET_ID, "url", "Its definition, or empty."),
    ]
    rows = [
        {f"{SPLIT_SET_ID}/name": split["name"], f"{SPLIT_SET_ID}/url": SPLIT_URLS.get(split["name"], "")}
        for split in card["splits"]
    ]
    described = _build_record_set(SPLIT_SET_ID, "The splits.", "name", fields)
    return [described | {"dataType": "cr:Split", "data": rows}]


def _describe_images(card: Mapping[str, Any], records: str) -> dict[str, Any]:
    texts = {"image": "Name of the image.", "sha256": "Hash of the image file."}
    if card["splits"]:
        texts["split"] = "Split of the image, or null."
    fields = [_build_field(IMAGE_SET_ID, name, about) for name, about in texts.items()]
    fields += [
        _build_field(IMAGE_SET_ID, state, f"Names of the {state} classes.") | {"isArray": True, "arrayShape": "-1"}
        for state in STATE_FIELDS
    ]
    for one in fields:
        path = f"$.{RECORDS_KEY}[*].{one['name']}"
        one["source"] = {"fileObject": {"@id": "records"}, "extract": {"jsonPath": path}}
    about = "One record per image. Each class is in exactly one of the four lists. Unanswered does not mean absent."
    return _build_record_set(IMAGE_SET_ID, about, "image", fields)


def _build_record_set(name: str, about: str, key: str, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": about,
        "key": {"@id": f"{name}/{key}"},
        "field": fields,
    }


def _build_field(record_set: str, name: str, about: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{name}",
        "name": name,
        "description": about,
        "dataType": "sc:Text",
    }


def _measure_responsible_use(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RAI fields that the data card measures. Fields without evidence are left out."""
    counts = _count_cells_by_source(card)
    fields: dict[str, Any] = {
        "rai:dataAnnotationPlatform": [card["made_with"]],
        "rai:dataAnnotationProtocol": _describe_protocol(card, counts),
        "rai:annotationsPerItem": _describe_annotations_per_item(card),
        "rai:machineAnnotationTools": _describe_machine_tools(card, counts),
        "rai:dataAnnotationAnalysis": _describe_agreement(card),
        "rai:dataLimitations": _describe_limitations(card, counts),
        "rai:dataImputationProtocol": _describe_imputation(card, counts),
    }
    return {key: value for key, value in fields.items() if value}


def _count_cells_by_source(card: Mapping[str, Any]) -> Counter[str]:
    """Return the number of labels by source. "" counts unanswered ones."""
    counts: Counter[str] = Counter()
    for class_ in card["classes"]:
        for cell in class_["cells"]:
            counts[cell["source"] or ""] += cell["cells"]
    return counts


def _describe_protocol(card: Mapping[str, Any], counts: Counter[str]) -> list[str]:
    sentences = ["Each image has one label per class: present, absent, unsure or unanswered."]
    sentences += [
        f"{format_count(many, 'label')} by the source {name!r}: {SOURCES[name].about}."
        for name, many in counts.most_common()
        if name in SOURCES
    ]
    return [*sentences, *card["choices_in_words"], *([card["how_audits_are_drawn"]] if card["audits"] else [])]


def _describe_annotations_per_item(card: Mapping[str, Any]) -> str:
    labels = sum(row["cells"] for row in card["answers"])
    if not labels or not card["images"]:
        return ""
    return (
        f"{labels / card['images']:.2f} labels per image on average: {format_count(labels, 'label')} on "
        f"{format_count(card['images'], 'image')}, one per image and class."
    )


def _describe_machine_tools(card: Mapping[str, Any], counts: Counter[str]) -> list[str]:
    model = card["model"]
    if not model["run"]:
        return []
    filled = [f"{many:,} with the source {name!r}" for name, many in counts.most_common() if name in _MODEL_SOURCES]
    return [
        f"{card['made_with']}: method {model['method']} on {model['backbone']}, run {model['run']}, version "
        f"{model['version']}, trained on {format_count(model['images_trained_on'], 'image')}. "
        f"Labels that it set: {', '.join(filled) or 'none'}."
    ]


_MODEL_SOURCES = ("model (accepted)", "model")


def _describe_agreement(card: Mapping[str, Any]) -> list[str]:
    certified = card["certificate"]
    relabels = certified["relabels"]
    sentences: list[str] = []
    for state, changed in (("present", "mistaken"), ("absent", "missed")):
        if relabels[state]:
            sentences.append(
                f"{format_count(relabels[state], 'label')} {state} got a second, blind answer: "
                f"{relabels[state] - relabels[changed]:,} stayed {state}, {relabels[changed]:,} changed."
            )
    if certified["compared"]:
        sentences.append(
            f"{format_count(certified['compared'], 'answer')} of several annotators on the same images "
            "were compared to measure mistakes."
        )
    if card["audits"]:
        sentences += _describe_figure("precision", "all classes", certified["overall"])
    return sentences


def _describe_limitations(card: Mapping[str, Any], counts: Counter[str]) -> list[str]:
    cells = sum(counts.values())
    sentences: list[str] = []
    if counts[""]:
        sentences.append(
            f"{counts['']:,} of {format_count(cells, 'label')} are unanswered. Unanswered does not mean absent."
        )
    if card["images_missing"]:
        missing = format_count(len(card["images_missing"]), "image is", "images are")
        sentences.append(f"{missing} missing or unreadable.")
    for row in (*card["classes"], {"name": "all classes", "certificate": card["certificate"]["overall"]}):
        if row["certificate"]["audited"]:
            for kind in ("recall", "recall_allowing"):
                sentences += _describe_figure(kind, row["name"], row["certificate"])
    sentences += card["lost"]
    return [*sentences, *card["limits"]] if card["audits"] else sentences


def _describe_figure(kind: str, name: str, row: Mapping[str, Any]) -> list[str]:
    figure = row[kind]
    if None in (figure["estimate"], figure["low"], figure["high"]):
        return []
    answers = row["audit_answers" if kind == "precision" else "audited"]
    what = f"{kind.partition('_')[0]} of {name}" + (f" {figure['assuming']}" if "assuming" in figure else "")
    return [
        f"The {what} is {figure['estimate']:.3f} (95% interval {figure['low']:.3f} to "
        f"{figure['high']:.3f}, {format_count(answers, 'audited label')})."
    ]


def _describe_imputation(card: Mapping[str, Any], counts: Counter[str]) -> str:
    filled = [(name, many) for name, many in counts.most_common() if name in FILL_SOURCES]
    sentences = [f"{format_count(many, 'label')} without an answer: filled in as {name!r}." for name, many in filled]
    sentences += (card["filled_in_by_model"] or {}).get("in_words", [])
    return " ".join(sentences)
