"""JSON lines (https://jsonlines.org) with labels and provenance, one object per image."""

import json
from collections.abc import Iterator
from typing import Any

from annotator.exchange.formats.export_view import STATE_WORDS, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.label_lines import read, recognize
from annotator.exchange.formats.shared.sidecars import GUARANTEE_COLUMNS
from annotator.exchange.formats.shared.times import format_iso_time

VALUE_TEXTS = ("0", "1", "null")  # by value 0, 1, and -1 (UNKNOWN), which indexes the last


def write_lines(view: View, out: Output) -> None:
    """Write one JSON object per line and image.

    {"image", "sha256", "width", "height", "labels": {class: 1 | 0 | null}, "provenance": {class: {...}}}, and if
    known "split", "event", "frame" (from 1), "attributes", "flag", "flagged_by", "flagged_at", "comments":
    [{"text", "annotator", "written_at"}], "missing" (reason).
    """
    keys = [json.dumps(class_.name, ensure_ascii=False) for class_ in view.classes]
    pairs = [[f"{key}: {word}" for word in VALUE_TEXTS] for key in keys]
    with out.open_text() as file:
        for block in view.blocks():
            provenance = _format_provenance(view, block, keys)
            for row, values in enumerate(block.values.tolist()):
                labels = ", ".join([pair[value] for pair, value in zip(pairs, values, strict=True)])
                head, tail = _format_head_and_tail(view, block, row)
                file.write(f'{head[:-1]}, "labels": {{{labels}}}, "provenance": {{{next(provenance)}}}{tail}}}\n')


def _format_head_and_tail(view: View, block: Block, row: int) -> tuple[str, str]:
    image, notes = block.images[row], block.notes[row]
    head: dict[str, Any] = {
        "image": image.name,
        "sha256": image.sha256,
        "width": image.width,
        "height": image.height,
    }
    if view.splits:
        head["split"] = block.splits[row] or None
    if event := block.event(row):
        head |= {"event": event.id, "frame": event.frame}
    if block.attributes[row]:
        head["attributes"] = dict(block.attributes[row])
    tail: dict[str, Any] = {}
    for note in notes:
        if note.kind == "flag":
            tail |= {"flag": note.text, "flagged_by": note.annotator, "flagged_at": format_iso_time(note.at)}
    if comments := [note for note in notes if note.kind == "comment"]:
        tail["comments"] = [
            {"text": note.text, "annotator": note.annotator, "written_at": format_iso_time(note.at)}
            for note in comments
        ]
    if block.missing[row]:
        tail["missing"] = block.missing[row]
    more = f", {json.dumps(tail, ensure_ascii=False)[1:-1]}" if tail else ""
    return json.dumps(head, ensure_ascii=False), more


def _format_provenance(view: View, block: Block, keys: list[str]) -> Iterator[str]:
    rows, columns = block.sources.nonzero()
    texts: list[list[str]] = [[] for _ in block.images]
    sources = [json.dumps(source) for source in view.sources]
    people = [json.dumps(person or None, ensure_ascii=False) for person in view.annotators]
    facts = (block.states, block.sources, block.annotators, block.decided_at, block.probabilities, block.seconds)
    listed = [rows.tolist(), columns.tolist(), *(values[rows, columns].tolist() for values in facts)]
    times: dict[float, str] = {}
    for row, column, state, source, person, at, chance, seconds in zip(*listed, strict=True):
        if at == at and at not in times:
            times[at] = f'"{format_iso_time(at)}"'
        text = (
            f'{keys[column]}: {{"state": "{STATE_WORDS[state]}", "source": {sources[source]}, "annotator": '
            f'{people[person]}, "decided_at": {times.get(at, "null")}, "probability": '
            f"{chance if chance == chance else 'null'}"
        )
        if view.columns.seconds:
            text += f', "seconds": {round(seconds, 3) if seconds == seconds else "null"}'
        texts[row].append(text + _format_cell_facts(block, (row, column)) + "}")
    return iter([", ".join(of_image) for of_image in texts])


def _format_cell_facts(block: Block, cell: tuple[int, int]) -> str:
    facts: dict[str, Any] = {}
    if accepted := block.accepted.get(cell):
        facts |= {name: getattr(accepted, name) for name in GUARANTEE_COLUMNS}
    if origin := block.origins.get(cell):
        at = None if origin.decided_at is None else format_iso_time(origin.decided_at)
        facts["origin"] = {"source": origin.source, "annotator": origin.annotator, "decided_at": at}
    return f", {json.dumps(facts, ensure_ascii=False)[1:-1]}" if facts else ""


JSONL = Format(
    name="jsonl",
    about="one JSON object per image, with provenance, flag and comments: nothing is lost",
    ending=".jsonl",
    recognize=recognize,
    read=read,
    write=write_lines,
    lost=FormatLosses(unsure=False, provenance=False),
)
