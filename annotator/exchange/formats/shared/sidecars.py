"""Sidecar files: provenance, notes and fields in two CSV files, for formats that cannot hold them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from annotator.exchange.files.csv_cells import CsvField
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Item
from annotator.exchange.formats.export_view import Block, CellAcceptance, Output, View
from annotator.exchange.formats.shared import label_table
from annotator.exchange.formats.shared.cell_columns import LONG_COLUMNS, format_cell_column
from annotator.exchange.formats.shared.times import format_iso_time
from annotator.exchange.reading.reading_options import ReadingOptions

SIDECAR_NAMES = ("provenance.csv", "notes.csv")
"""Their names in a folder; beside a file they begin with its name and a dot."""
GUARANTEE_COLUMNS = ("run", "threshold", "precision", "confidence")
"""Columns of data sets with auto-accepted cells only."""
ORIGIN_COLUMNS = ("original_source", "original_annotator", "original_decided_at")
"""Columns of data sets with imported answers whose origin is known."""
NOTE_COLUMNS = ("image", "kind", "note", "annotator", "written_at")


class SidecarWriter:
    """A context manager that writes both files of an export, while the format reads `SidecarWriter.blocks`."""

    def __init__(self, view: View, out: Output, provenance: str, notes: str):
        self._view, self._out, self._names = view, out, (provenance, notes)
        self._field = CsvField(view.raw)
        self._has_files = view.image_mode != "none"
        self._begun = self._done = False

    def __enter__(self) -> "SidecarWriter":
        self._stack = ExitStack()
        self._files = [self._stack.enter_context(self._out.open_text(name)) for name in self._names]
        self._write_headers()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            if kind is None and not self._done:
                for file in self._files:
                    file.seek(0)
                    file.truncate()
                self._write_headers()
                for block in self._view.blocks():
                    self._write_block(block)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, and write both files in the first pass."""
        first, self._begun = not self._begun, True
        for block in self._view.blocks():
            if first:
                self._write_block(block)
            yield block
        self._done = self._done or first

    def _write_headers(self) -> None:
        view, provenance_columns = self._view, [*LONG_COLUMNS, "probability"]
        if view.columns.seconds:
            provenance_columns.append("seconds")
        for fact, columns in (("accepted", GUARANTEE_COLUMNS), ("origins", ORIGIN_COLUMNS), ("missing", ("missing",))):
            provenance_columns += columns if fact in view.has else ()
        for file, columns in zip(self._files, (provenance_columns, NOTE_COLUMNS), strict=True):
            file.write(",".join([*columns, *([label_table.EXPORTED_FILE_COLUMN] if self._has_files else [])]) + "\n")

    def _write_block(self, block: Block) -> None:
        provenance, notes = self._files
        provenance.writelines(self._format_provenance_lines(block))
        has_facts, has_splits = "attributes" in self._view.has, bool(self._view.splits)
        for row, (image, of_image) in enumerate(zip(block.images, block.notes, strict=True)):
            rows = [(note.kind, note.text, note.annotator, format_iso_time(note.at)) for note in of_image]
            facts = dict(block.attributes[row]) if has_facts else {}
            if has_splits:  # the split in this export replaces the image's attribute `split`
                facts["split"] = block.splits[row]
            rows += [(label_table.ATTRIBUTE_PREFIX + name, value, "", "") for name, value in facts.items() if value]
            file = (block.files[row],) if self._has_files else ()
            notes.writelines(",".join(map(self._field, (image.name, *values, *file))) + "\n" for values in rows)

    def _format_provenance_lines(self, block: Block) -> Iterator[str]:
        view, field = self._view, self._field
        rows, columns = (axis.tolist() for axis in block.sources.nonzero())
        names = [field(image.name) for image in block.images]
        listed = [[names[row] for row in rows]]
        listed += [format_cell_column(name, view, block, field) for name in (*LONG_COLUMNS[1:], "probability")]
        if view.columns.seconds:
            listed.append(format_cell_column("seconds", view, block, field))
        cells = list(zip(rows, columns, strict=True))
        if "accepted" in view.has:
            listed.append([_format_guarantee(block.accepted.get(cell)) for cell in cells])
        if "origins" in view.has:
            listed.append([self._format_origin(block, cell) for cell in cells])
        if "missing" in view.has:
            listed.append([field(block.missing[row]) for row in rows])
        if self._has_files:
            files = [field(file) for file in block.files]
            listed.append([files[row] for row in rows])
        for line in zip(*listed, strict=True):
            yield ",".join(line) + "\n"

    def _format_origin(self, block: Block, cell: tuple[int, int]) -> str:
        origin = block.origins.get(cell)
        if origin is None:
            return ",,"
        at = "" if origin.decided_at is None else format_iso_time(origin.decided_at)
        return ",".join([self._field(origin.source), self._field(origin.annotator), at])


def _format_guarantee(accepted: CellAcceptance | None) -> str:
    return ",".join("" if accepted is None else str(getattr(accepted, name)) for name in GUARANTEE_COLUMNS)


def find_sidecars(path: Path) -> list[Path]:
    """Return the existing sidecar files of an exported file or folder."""
    if path.is_dir():
        paths = [path / name for name in SIDECAR_NAMES]
    else:
        paths = [path.with_name(f"{path.stem}.{name}") for name in SIDECAR_NAMES]
    return [sidecar for sidecar in paths if sidecar != path and sidecar.is_file()]


def read_sidecars(path: Path, problems: Problems) -> Iterator[Item]:
    """Yield items from an export's provenance and notes files, with the file name in `place`."""
    for sidecar in find_sidecars(path):
        for item in label_table.read_table(sidecar, problems, ReadingOptions()).items:
            item.place = f"{sidecar.name}, {f'line {item.place}' if isinstance(item.place, int) else item.place}"
            yield item
