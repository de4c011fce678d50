"""Label Studio JSON 1.x and 2.x (https://labelstud.io/guide/task_format).

Written: results for the Choices controls `present`, `absent` and `unsure`, in this order, because some
programs read only the first. `meta` keeps annotators and probabilities. No `completed_by`, as imports fail
for unknown users.

Read: choices, region labels and taxonomy leaves are present, except in controls `absent` and `unsure`.
Predictions are scores.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xml_text import check_xml_text
from annotator.exchange.formats import label_studio_min
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.export_view import Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.label_studio_min import find_image_name, format_annotator
from annotator.exchange.formats.shared.controls import Controls, InterpretedChoices
from annotator.exchange.formats.shared.embedded_extras import (
    EXTRAS_KEY,
    Extras,
    ImageLabels,
    Origins,
    build_extras,
    iter_image_labels,
    to_imported_labels,
)
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

CONFIG_SUFFIX = ".config.xml"
STATE_CONTROLS = ("present", "absent", "unsure")
TICK_THRESHOLD = 0.5  # probability from which on a prediction ticks a class
LOCAL_FILES_PREFIX = "/data/local-files/?d="
MAX_CONFIG_BYTES = 16 << 20  # bytes of a labeling config
_TASK_KEYS = (b'"annotations"', b'"predictions"', b'"completions"')
_NON_LABEL_TYPES = ("textarea", "rating", "number", "datetime", "pairwise", "relation", "video", "ranker")


class _Result(msgspec.Struct):
    type: str = ""
    from_name: str | None = None
    value: dict[str, Any] | None = None
    score: float | None = None


class _Annotation(msgspec.Struct):
    result: list[_Result] | None = None
    was_cancelled: bool | None = None
    skipped: bool | None = None
    completed_by: Any = None
    created_at: Any = None
    created_username: Any = None


class _Prediction(msgspec.Struct):
    result: list[_Result] | None = None
    score: float | None = None


class _Meta(msgspec.Struct, rename={"extras": EXTRAS_KEY}):
    extras: Extras | None = None


class _Task(msgspec.Struct):
    data: dict[str, Any]
    id: Any = None
    meta: _Meta | None = None
    annotations: list[_Annotation] | None = None
    completions: list[_Annotation] | None = None
    predictions: list[_Prediction | int | str] | None = None


_TASK_DECODER = msgspec.json.Decoder(list[_Task])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    if start.startswith(b"[") and b'"data"' in start and any(key in start for key in _TASK_KEYS):
        return "Label Studio tasks: a list of objects with data, annotations and predictions"
    return label_studio_min.recognize(path)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the tasks as items. The options select controls in place of columns.

    Files are read twice, because all choices determine the meaning of controls.
    """
    if label_studio_min.recognize(path):
        return label_studio_min.read(path, problems, options)
    controls = _interpret_controls(path, options)
    said = [
        "Ticked choices and the labels of boxes and regions are present; a skipped annotation is no answer.",
        "What is not ticked stays unknown, unless the set is said to be exhaustive.",
        *controls.sentences,
    ]
    classes = _read_config_classes(path.with_name(path.stem + CONFIG_SUFFIX))
    return Contents(
        classes,
        _read_items(path, controls, problems),
        place="task",
        sentences=said,
        interpretations=controls.interpretations,
    )


def _interpret_controls(path: Path, options: ReadingOptions) -> Controls:
    controls = Controls(options, own=STATE_CONTROLS)
    is_ours = f'"{EXTRAS_KEY}"'.encode() in read_start(path)
    for piece in () if is_ours else read_pieces(path, wanted=lambda key: key == ""):
        for _, task in piece.decode(_TASK_DECODER, Problems()):  # `_items` notes what cannot be read
            for result in _iter_results(task):
                with suppress(ValueError):
                    if result.type == "choices":
                        controls.count_choices(result.from_name or "", _list_result_classes(result))
                    else:
                        controls.count_regions(_list_result_classes(result))
    controls.interpret_controls("control")
    return controls


def _iter_results(task: _Task) -> Iterator[_Result]:
    answers = [one for one in task.annotations or task.completions or () if not one.was_cancelled and not one.skipped]
    for one in (*answers, *_list_predictions(task)):
        yield from one.result or ()


def _list_predictions(task: _Task) -> list[_Prediction]:
    return [one for one in task.predictions or () if isinstance(one, _Prediction)]


def _read_config_classes(config: Path) -> list[tuple[str, str]]:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, parse

    if not config.is_file():
        return []
    try:
        if config.stat().st_size > MAX_CONFIG_BYTES:
            raise AnnotatorError(
                f"{config} has more than {MAX_CONFIG_BYTES >> 20} MB: it is no labeling config. Move it away."
            )
        tree = parse(config)
    except (ParseError, DefusedXmlException, OSError) as error:
        raise AnnotatorError(f"{config} is no labeling config: {error}. Mend it, or move it away.") from error
    values = [choice.get("value", "") for choices in tree.iter("Choices") for choice in choices.iter("Choice")]
    return [(name, "") for name in dict.fromkeys(values) if name]


def _read_items(path: Path, controls: Controls, problems: Problems) -> Iterator[Item]:
    for piece in read_pieces(path, wanted=lambda key: key == ""):
        for index, task in piece.decode(_TASK_DECODER, problems):
            item = _build_item(task, index + 1, controls, problems)
            if item:
                yield item


def _build_item(task: _Task, place: int, controls: Controls, problems: Problems) -> Item | None:
    kept = task.meta.extras if task.meta else None
    image = (kept.image if kept else "") or find_image_name(task.data)
    if not image:
        problems.add(f"task {place}: no value of data ({', '.join(map(repr, list(task.data)[:10]))}) names an image")
        return None
    origins: Origins = {}
    scores: dict[str, float] = {}
    facts: dict[str, str] = {}
    answered = is_nothing = False
    try:
        for annotation in task.annotations or task.completions or ():
            if not annotation.was_cancelled and not annotation.skipped:
                answered = True
                named = _interpret_results(annotation.result, controls)
                origin = (
                    format_annotator(annotation.completed_by, annotation.created_username),
                    _parse_creation_time(annotation),
                    "",
                )
                origins |= dict.fromkeys(named.labels, origin)
                facts |= named.facts
                is_nothing |= named.is_nothing
        for prediction in _list_predictions(task):
            for result in prediction.result or ():
                score = result.score if result.score is not None else prediction.score
                if score is not None:
                    labels = _interpret_results([result], controls).labels
                    scores |= dict.fromkeys((name for name, state in labels if state == PRESENT), score)
    except ValueError as error:
        problems.add(f"task {place}: {error}")
        return None
    if not kept:
        is_nothing &= all(state != PRESENT for _, state in origins)
        labels = to_imported_labels(origins)
        return Item(image, place, labels, exhaustive=is_nothing, scores=scores, attributes=facts, answered=answered)
    written = kept.list_origins()
    return Item(
        image,
        place,
        to_imported_labels(origins | {cell: written[cell] for cell in origins if cell in written}),
        scores=scores | kept.probabilities,
        sha256=kept.sha256,
        attributes=kept.list_attributes(),
        remarks=kept.list_remarks(),
        answered=answered,
    )


def _interpret_results(results: list[_Result] | None, controls: Controls) -> InterpretedChoices:
    choices: list[tuple[str, list[str]]] = []
    regions: list[tuple[str, int]] = []
    for result in results or ():
        if result.type == "choices":
            choices.append((result.from_name or "", _list_result_classes(result)))
        else:
            regions += [(name, PRESENT) for name in _list_result_classes(result)]
    named = controls.interpret_choices(choices)
    named.labels = list(dict.fromkeys([*named.labels, *regions]))
    return named


def _parse_creation_time(annotation: _Annotation) -> float | None:
    return parse_iso_time(str(annotation.created_at or ""))


def _list_result_classes(result: _Result) -> list[str]:
    if result.type in _NON_LABEL_TYPES or not result.value:
        return []
    named = result.value.get(result.type)
    if named is None:
        named = next((result.value[key] for key in ("choices", "labels") if key in result.value), ())
    if isinstance(named, str):
        named = [named]
    if result.type == "taxonomy" and isinstance(named, list):
        named = [path[-1] for path in named if isinstance(path, list) and path]
    if not isinstance(named, (list, tuple)) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"the field value.{result.type} of {result.from_name!r} is not a list of class names")
    return [name for name in named if name]


def write(view: View, output: Output) -> None:
    """Write tasks and labeling config. Raises AnnotatorError for class names that XML cannot hold."""
    names = [class_.name for class_ in view.classes]
    check_xml_text("classes", names)
    with output.open_text(CONFIG_SUFFIX) as file:
        file.write(format_labeling_config(names))
    encode = msgspec.json.Encoder().encode
    with output.open_binary() as file:
        between = b"[\n"
        for block in view.blocks():
            tasks = _build_tasks(view, names, block)
            file.write(between + b",\n".join(map(encode, tasks)))
            between = b",\n"
        file.write(b"\n]\n" if between == b",\n" else b"[]\n")


def format_labeling_config(names: list[str]) -> str:
    """Return a project's XML config with one Choices control per state."""
    choices = "".join(f"      <Choice value={quoteattr(name)}/>\n" for name in names)
    controls = "".join(
        f'    <Header value="{state.capitalize()}"/>\n'
        f'    <Choices name="{state}" toName="image" choice="multiple" showInLine="true">\n{choices}    </Choices>\n'
        for state in STATE_CONTROLS
    )
    return f'<View>\n    <Image name="image" value="$image"/>\n{controls}</View>\n'


def _build_tasks(view: View, names: list[str], block: Block) -> Iterator[dict[str, Any]]:
    for row, (image, given) in enumerate(zip(block.images, iter_image_labels(block), strict=True)):
        kept = build_extras(view, names, block, row, given)
        task: dict[str, Any] = {
            "id": image.id,
            "data": {"image": LOCAL_FILES_PREFIX + quote(image.name)},
            "meta": {EXTRAS_KEY: kept},
            "annotations": _build_annotations(names, given),
            "predictions": [],
        }
        if kept.probabilities:
            ticked = [name for name, probability in kept.probabilities.items() if probability >= TICK_THRESHOLD]
            sure = sum(max(chance, 1 - chance) for chance in kept.probabilities.values()) / len(kept.probabilities)
            results = [_build_result("present", ticked)] if ticked else []
            task["predictions"] = [{"model_version": "annotator", "score": round(sure, 4), "result": results}]
        yield task


def _build_annotations(names: list[str], given: ImageLabels) -> list[dict[str, Any]]:
    if not given.columns:
        return []
    by_state = zip(STATE_CONTROLS, given.by_state(names), strict=True)
    results = [_build_result(state, named) for state, named in by_state if named]
    return [{"was_cancelled": False, "ground_truth": False, "result": results}]


def _build_result(control: str, named: list[str]) -> dict[str, Any]:
    return {
        "id": control,
        "from_name": control,
        "to_name": "image",
        "type": "choices",
        "value": {"choices": named},
    }


LABEL_STUDIO = Format(
    "label-studio",
    "Label Studio: tasks with annotations and predictions, and a labeling config",
    ".json",
    recognize,
    read,
    write,
    FormatLosses(unsure=False, provenance=False),
)
