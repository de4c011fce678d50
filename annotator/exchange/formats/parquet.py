"""Parquet tables (https://parquet.apache.org) with one row per image or per answer.

Class columns are int8: 1, 0 or null. `provenance` lists all answers. Other columns get "_" if a class has
their name. The schema records column meanings for parquet_reader.py.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from annotator.exchange.formats.export_view import STATE_WORDS, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.parquet_reader import OWN_COLUMNS, SCHEMA_KEY, read, recognize
from annotator.exchange.formats.shared.sidecars import GUARANTEE_COLUMNS, ORIGIN_COLUMNS

BLOCKS_PER_ROW_GROUP = 16  # blocks in a row group


def write_parquet(view: View, out: Output) -> None:
    """Write the table, compressed with zstd."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _build_cell_table if view.columns.long else _build_image_table
    with out.open_binary() as file:
        writer: Any = None
        waiting: list[Any] = []
        for table in (rows(view, block) for block in view.blocks()) if view.images else _build_empty_table(view):
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema, compression="zstd")
            waiting.append(table)
            if len(waiting) == BLOCKS_PER_ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting), row_group_size=1 << 20)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=1 << 20)
        writer.close()


def _build_empty_table(view: View) -> Iterator[Any]:
    import pyarrow as pa

    names = ["image", *(class_.name for class_ in view.classes)]
    types = [pa.string(), *(pa.int8() for _ in view.classes)]
    yield _add_column_metadata(pa.schema(list(zip(names, types, strict=True))).empty_table(), view)


def _add_column_metadata(table: Any, view: View) -> Any:
    classes = [class_.name for class_ in view.classes]
    others = [name for name in table.column_names if name not in classes]
    columns = {name: next((one for one in others if one.rstrip("_") == name), "") for name in OWN_COLUMNS}
    return table.replace_schema_metadata({SCHEMA_KEY: json.dumps(columns | {"classes": classes})})


def _build_image_table(view: View, block: Block) -> Any:
    import pyarrow as pa

    facts: dict[str, Any] = {
        "image": pa.array([image.name for image in block.images], pa.string()),
        "sha256": pa.array([image.sha256 for image in block.images], pa.string()),
        "width": pa.array([image.width for image in block.images], pa.int32()),
        "height": pa.array([image.height for image in block.images], pa.int32()),
    }
    if view.splits:
        facts["split"] = pa.array([split or None for split in block.splits], pa.string())
    facts |= _build_event_columns(view, block)
    labels = {
        class_.name: pa.array(block.values[:, column], pa.int8(), mask=block.values[:, column] < 0)
        for column, class_ in enumerate(view.classes)
    }
    rows, _ = block.sources.nonzero()
    offsets = pa.array(np.searchsorted(rows, np.arange(len(block.images) + 1)), pa.int32())
    answers = _build_answer_columns(view, block)
    more: dict[str, Any] = {
        "provenance": pa.ListArray.from_arrays(
            offsets, pa.StructArray.from_arrays(list(answers.values()), list(answers))
        )
    }
    if "attributes" in view.has:
        pairs = [list(facts.items()) for facts in block.attributes]
        more["attributes"] = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if "notes" in view.has:
        more["notes"] = pa.array(
            [[_format_note(note) for note in notes] for notes in block.notes], pa.list_(_get_note_type())
        )
    if "missing" in view.has:
        more["missing"] = pa.array([reason or None for reason in block.missing], pa.string())
    named = {_make_unique_name(name, labels): values for name, values in facts.items()}
    table = pa.table(named | labels | {_make_unique_name(name, labels): values for name, values in more.items()})
    return _add_column_metadata(table, view)


def _build_cell_table(view: View, block: Block) -> Any:
    import pyarrow as pa

    rows, columns = block.sources.nonzero()
    facts = {"image": pa.array([image.name for image in block.images], pa.string()).take(pa.array(rows))}
    if view.splits:
        facts["split"] = pa.array([split or None for split in block.splits], pa.string()).take(pa.array(rows))
    facts |= {name: values.take(pa.array(rows)) for name, values in _build_event_columns(view, block).items()}
    answers = _build_answer_columns(view, block)
    values = block.values[rows, columns]
    return pa.table(facts | answers | {"value": pa.array(values, pa.int8(), mask=values < 0)})


def _build_answer_columns(view: View, block: Block) -> dict[str, Any]:
    import pyarrow as pa

    cells = rows, columns = block.sources.nonzero()

    def words(texts: list[str | None], places: np.ndarray) -> Any:
        return pa.array(texts, pa.string()).take(pa.array(places.astype(np.int64)))

    answers = {
        "class": words([class_.name for class_ in view.classes], columns),
        "state": words(list(STATE_WORDS), block.states[cells]),
        "source": words(list(view.sources), block.sources[cells]),
        "annotator": words([name or None for name in view.annotators], block.annotators[cells]),
        "decided_at": _to_timestamps(block.decided_at[cells]),
        "probability": _to_float_array(block.probabilities[cells]),
    }
    if view.columns.seconds:
        answers["seconds"] = _to_float_array(block.seconds[cells])
    listed = list(zip(rows.tolist(), columns.tolist(), strict=True))
    if "accepted" in view.has:
        accepted = [block.accepted.get(cell) for cell in listed]
        for name in GUARANTEE_COLUMNS:
            kind = pa.int64() if name == "run" else pa.float64()
            answers[name] = pa.array([None if made is None else getattr(made, name) for made in accepted], kind)
    if "origins" in view.has:
        origins = [block.origins.get(cell) for cell in listed]
        answers[ORIGIN_COLUMNS[0]] = pa.array([(origin and origin.source) or None for origin in origins], pa.string())
        answers[ORIGIN_COLUMNS[1]] = pa.array(
            [(origin and origin.annotator) or None for origin in origins], pa.string()
        )
        at = [np.nan if origin is None or origin.decided_at is None else origin.decided_at for origin in origins]
        answers[ORIGIN_COLUMNS[2]] = _to_timestamps(np.array(at, np.float64))
    return answers


def _build_event_columns(view: View, block: Block) -> dict[str, Any]:
    import pyarrow as pa

    if "events" not in view.has:
        return {}
    events = [block.event(row) for row in range(len(block.images))]
    return {
        "event": pa.array([event and event.id for event in events], pa.string()),
        "frame": pa.array([event and event.frame for event in events], pa.int32()),
    }


def _to_timestamps(seconds: np.ndarray) -> Any:
    import pyarrow as pa

    unknown = np.isnan(seconds)
    moments = np.rint(np.where(unknown, 0, seconds) * 1e6).astype(np.int64) // 1000  # truncated as by format_iso_time
    return pa.array(moments, pa.int64(), mask=unknown).cast(pa.timestamp("ms", "UTC"))


def _to_float_array(values: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.float64(), mask=np.isnan(values))


def _format_note(note: Any) -> dict[str, Any]:
    return {
        "kind": note.kind,
        "text": note.text,
        "annotator": note.annotator,
        "written_at": round(note.at * 1e6) // 1000,
    }


def _get_note_type() -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("kind", "text", "annotator")]
    return pa.struct([*texts, ("written_at", pa.timestamp("ms", "UTC"))])


def _make_unique_name(name: str, taken: dict[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


PARQUET = Format(
    name="parquet",
    about="one row per image with an int8 column per class and all answers; read by pandas, pyarrow, DuckDB, Spark",
    ending=".parquet",
    recognize=recognize,
    read=read,
    write=write_parquet,
    lost=FormatLosses(unknown=False, unsure=False, provenance=False),
    is_general=True,
)
