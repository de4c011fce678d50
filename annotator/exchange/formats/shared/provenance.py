"""The source of every value, and people's notes and facts, as two CSV files beside a format without room for them.

The provenance has the columns image,class,state,... and is read back with the labels that it lies beside. Both are
written while the format reads the blocks for the first time, so that the blocks need not be read again for them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_cells import Field
from annotator.exchange.formats.contents import Item
from annotator.exchange.formats.shared import label_table
from annotator.exchange.formats.shared.cell_columns import LONG, cell_column
from annotator.exchange.formats.shared.times import iso_time
from annotator.exchange.formats.view import Accepted, Block, Output, View

SIDECARS = ("provenance.csv", "notes.csv")
"""Their names in a folder; beside a file they begin with its name and a dot."""
GUARANTEE = ("run", "threshold", "precision", "confidence")
"""Columns of data sets with auto-accepted cells only."""
ORIGIN = ("original_source", "original_annotator", "original_decided_at")
"""Columns of data sets with imported answers whose origin is known."""
NOTES = ("image", "kind", "note", "annotator", "written_at")


class Sidecars:
    """The two files of one export; use as a context manager around the writing of the format.

    Args:
        view: The view that the format writes. The format must read its blocks from `Sidecars.blocks`.
    """

    def __init__(self, view: View, out: Output, provenance: str, notes: str):
        self._view, self._out, self._names = view, out, (provenance, notes)
        self._field = Field(view.raw)
        self._has_files = view.written != "none"
        self._begun = self._done = False

    def __enter__(self) -> "Sidecars":
        self._stack = ExitStack()
        self._files = [self._stack.enter_context(self._out.text(name)) for name in self._names]
        self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            if kind is None and not self._done:
                for file in self._files:
                    file.seek(0)
                    file.truncate()
                self._begin()
                for block in self._view.blocks():
                    self._add(block)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the view; the first time, also write them to the two files."""
        first, self._begun = not self._begun, True
        for block in self._view.blocks():
            if first:
                self._add(block)
            yield block
        self._done = self._done or first

    def _begin(self) -> None:
        view, provenance_columns = self._view, [*LONG, "probability"]
        if view.columns.seconds:
            provenance_columns.append("seconds")
        for fact, columns in (("accepted", GUARANTEE), ("origins", ORIGIN), ("missing", ("missing",))):
            provenance_columns += columns if fact in view.has else ()
        for file, columns in zip(self._files, (provenance_columns, NOTES), strict=True):
            file.write(",".join([*columns, *([label_table.WRITTEN] if self._has_files else [])]) + "\n")

    def _add(self, block: Block) -> None:
        provenance, notes = self._files
        provenance.writelines(self._provenance(block))
        has_facts, has_splits = "attributes" in self._view.has, bool(self._view.splits)
        for row, (image, of_image) in enumerate(zip(block.images, block.notes, strict=True)):
            rows = [(note.kind, note.text, note.annotator, iso_time(note.at)) for note in of_image]
            facts = dict(block.attributes[row]) if has_facts else {}
            if has_splits:  # the split in this export replaces the image's attribute `split`
                facts["split"] = block.splits[row]
            rows += [(label_table.FACT + name, value, "", "") for name, value in facts.items() if value]
            file = (block.files[row],) if self._has_files else ()
            notes.writelines(",".join(map(self._field, (image.name, *values, *file))) + "\n" for values in rows)

    def _provenance(self, block: Block) -> Iterator[str]:
        view, field = self._view, self._field
        rows, columns = (axis.tolist() for axis in block.sources.nonzero())
        names = [field(image.name) for image in block.images]
        listed = [[names[row] for row in rows]]
        listed += [cell_column(name, view, block, field) for name in (*LONG[1:], "probability")]
        if view.columns.seconds:
            listed.append(cell_column("seconds", view, block, field))
        cells = list(zip(rows, columns, strict=True))
        if "accepted" in view.has:
            listed.append([_guarantee(block.accepted.get(cell)) for cell in cells])
        if "origins" in view.has:
            listed.append([self._origin(block, cell) for cell in cells])
        if "missing" in view.has:
            listed.append([field(block.missing[row]) for row in rows])
        if self._has_files:
            files = [field(file) for file in block.files]
            listed.append([files[row] for row in rows])
        for line in zip(*listed, strict=True):
            yield ",".join(line) + "\n"

    def _origin(self, block: Block, cell: tuple[int, int]) -> str:
        origin = block.origins.get(cell)
        if origin is None:
            return ",,"
        at = "" if origin.decided_at is None else iso_time(origin.decided_at)
        return ",".join([self._field(origin.source), self._field(origin.annotator), at])


def _guarantee(accepted: Accepted | None) -> str:
    return ",".join("" if accepted is None else str(getattr(accepted, name)) for name in GUARANTEE)


def sidecars(source: Path) -> list[Path]:
    """Return the paths of the two files that exist beside a source, or in it if it is a folder."""
    if source.is_dir():
        paths = [source / name for name in SIDECARS]
    else:
        paths = [source.with_name(f"{source.stem}.{name}") for name in SIDECARS]
    return [path for path in paths if path != source and path.is_file()]


def read_sidecars(source: Path, problems: Problems) -> Iterator[Item]:
    """Yield the items of these files; their places name the file."""
    for path in sidecars(source):
        for item in label_table.read(path, problems).items:
            item.place = f"{path.name}, {f'line {item.place}' if isinstance(item.place, int) else item.place}"
            yield item
