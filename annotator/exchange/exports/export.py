"""Writing a data set and its data card: all files or none. The Export page and the command line both use this module.

The data set, its provenance, its splits and its card are read in one transaction that stays open until all is written.
"""

import glob
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from annotator.errors import several
from annotator.exchange.exports import data_card, destination
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet, Progress, data_set
from annotator.exchange.exports.image_files import Linked, Placer
from annotator.exchange.exports.losses import WouldLose, losses
from annotator.exchange.exports.output import FileOutput, FolderOutput, path_beside
from annotator.exchange.exports.tags import write_cells
from annotator.exchange.formats import find_format
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.provenance import SIDECARS, Sidecars
from annotator.exchange.formats.view import Block, View
from annotator.store.database import new_folders
from annotator.store.database.arrays import sweep
from annotator.store.database.database import Database
from annotator.store.database.files_together import finish, replacing_together
from annotator.store.database.new_folders import new_folder
from annotator.store.labels import tagged_exports as tags
from annotator.store.labels.tagged_exports import Tag


@dataclass(frozen=True, eq=False)
class Prepared:
    """An export that is read and can be written while its transaction is open.

    Attributes:
        card: The data card.
        said: Sentences that a person should read before the export is written.
        tagged: Paths of the files with the cells for its tag; filled when the export is written.
        linked: Image files that got a hard link, which changes the state by which a file counts as unchanged.
        packed, check: As in `prepare`.
    """

    db: Database
    data: DataSet
    target: Path
    format: Format
    choices: Choices
    card: dict[str, Any]
    said: list[str]
    overwrite: bool = False
    tag: str = ""
    progress: Progress | None = None
    packed: bool = False
    check: Callable[[], None] | None = None
    tagged: list[Path] = field(default_factory=list)
    linked: Linked = field(default_factory=Linked)

    @property
    def is_folder(self) -> bool:
        """Return whether the format is a folder of files."""
        return not self.format.ending


@contextmanager
def prepare(
    db: Database,
    target: Path,
    kind: str,
    choices: Choices | None = None,
    *,
    overwrite: bool = False,
    lossy: bool = False,
    tag: str = "",
    by: str = "",
    place: str = "",
    progress: Progress | None = None,
    packed: bool = False,
    check: Callable[[], None] | None = None,
) -> Generator[Prepared]:
    """Check whether an export can be written, and read the content of its card. Call `write` within the `with` block.

    Nothing is written here; but an earlier export to `target` that was killed while renaming its files is finished.

    Args:
        db: The project's database.
        target: The file or folder to write.
        kind: The name of the format.
        choices: What is exported; None: the defaults.
        overwrite: Also replace files that no export has written; folders are replaced only if an export wrote them.
        lossy: Write the export even if the format cannot hold all of it.
        tag: The name that the export gets once the block has ended; "" for no tag.
        by: The person who gives the tag.
        place: Location of the export that the tag records; "": the target.
        progress: Called with (images counted, images in all), and by `write` with (images written, images in all); an
            exception raised by it ends the export, of which nothing is left.
        packed: The folder will be packed at once and then deleted: its images may be links.
        check: Called before each image file is written; an exception raised by it ends the export in the same way.

    Raises:
        AnnotatorError: The format is unknown, the target or the choices are wrong (lists all problems at once), or the
            format would lose labels (with the counts).
    """
    format_, choices = find_format(kind, "write"), choices or Choices()
    choices = replace(choices, images=choices.images or format_.images)
    if format_.ending:
        finish(target)
    problems = choices.problems() + choices.problems_of_format(format_)
    problems += _problems_of_target(target, format_, overwrite)
    if tag:
        db.refuse_read_only()
        problems += [problem for problem in [tags.name_problem(db, tag)] if problem]
    if problems:
        raise several("Nothing was exported:", problems)
    with data_set(db, choices, names_files=not format_.ending, progress=progress) as data:
        lost = losses(format_, data.tallies)
        if lost and not lossy:
            raise WouldLose(lost)
        lost = [loss.past_tense for loss in lost]
        card = data_card.card(data, data_card.quality(db), [target.name], choices, tag, lost)
        data = replace(data, view=replace(data.view, card=card))
        filled = data.fill.sentences() if data.fill else []
        said = [*filled, *data.said, *lost]
        prepared = Prepared(db, data, target, format_, choices, card, said, overwrite, tag, progress, packed, check)
        try:
            yield prepared
        except BaseException:
            for path in prepared.tagged:
                path.unlink(missing_ok=True)
            raise
    prepared.linked.record(db)
    for path in prepared.tagged:
        newest, place = card["certificate"]["last_decision"], place or str(target.resolve())
        tags.keep(db, Tag(0, tag, by, 0.0, newest, format_.name, place, choices.as_json(), card), path)


def write(export: Prepared) -> list[Path]:
    """Write the data set and its data card: all files or none. Return the files, or the folder. Raises DiskFull."""
    written = _write_folder(export) if export.is_folder else _write_files(export)
    if export.tag:
        export.tagged.append(write_cells(export.db, export.data, export.progress))
    return written


def _write_files(export: Prepared) -> list[Path]:
    target = export.target
    sweep(target.parent, f".{glob.escape(target.stem)}.*")  # removes files left by killed exports
    card_md, card_json = data_card.paths(target)
    with replacing_together(target) as files:
        out = FileOutput(target, files, export.overwrite)
        _write_format(export, out, [f".{name}" for name in SIDECARS])
        card = export.card | {"files": [path.name for path in out.paths()]}
        with out.text(card_md.name.removeprefix(target.stem)) as file:
            file.write(data_card.markdown(card))
        sealed = destination.sealed(card, card_json, out.written())
        with out.text(card_json.name.removeprefix(target.stem)) as file:
            file.write(_json(sealed))
        return out.paths()


def export(
    db: Database, target: Path, kind: str, choices: Choices | None = None, **options: Any
) -> tuple[DataSet, list[Path]]:
    """Prepare and write an export; return the data set, whose blocks can no longer be read, and the paths written."""
    with prepare(db, target, kind, choices, **options) as prepared:
        return prepared.data, write(prepared)


def card_of(
    db: Database, files: list[str], choices: Choices | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Return the data card of the data set in its current state."""
    choices = choices or Choices()
    with data_set(db, choices, progress=progress) as data:
        return data_card.card(data, data_card.quality(db), files, choices)


def _write_folder(export: Prepared) -> list[Path]:
    target = export.target
    new_folders.sweep(target.parent, target.name)
    with new_folder(target) as folder:
        chosen = export.choices
        options: dict[str, Any] = {"packed": export.packed, "check": export.check}
        placer = Placer(export.db, chosen.images, chosen.pixels, export.linked, **options)
        out = FolderOutput(folder, placer)
        _write_format(export, out, list(SIDECARS))
        card = export.card | {"choices_in_words": [*export.card["choices_in_words"], *placer.said()]}
        files = out.names()[: data_card.FILES_NAMED]  # without the names of the cards, which are written below
        card_md, card_json = data_card.paths(folder, is_folder=True)
        with out.text(card_md.name) as file:
            file.write(data_card.markdown(card))  # its "files" is the folder's name; the JSON card lists files
        sealed = destination.sealed(card | {"files": files}, card_json, *out.sealed())
        card_json.write_text(_json(sealed), encoding="utf-8")
    export.said.extend([*export.data.view.said, *placer.said()])
    return [target]


def _write_format(export: Prepared, out: FileOutput | FolderOutput, sidecars: list[str]) -> None:
    format_, view = export.format, export.data.view
    assert format_.write is not None  # checked by find_format
    if export.progress:
        view = replace(view, blocks=partial(_shown, view, export.progress))
    if not format_.lost.provenance:
        format_.write(view, out)
        return
    with Sidecars(view, out, *sidecars) as beside_it:
        format_.write(replace(view, blocks=beside_it.blocks), out)


def _shown(view: View, progress: Progress) -> Iterator[Block]:
    """Yield the blocks, and report each as written when the next one is requested."""
    done = 0
    for block in view.blocks():
        yield block
        done += len(block.images)
        progress(done, view.images)


def _problems_of_target(target: Path, format_: Format, overwrite: bool) -> list[str]:
    if not format_.ending:
        return destination.problems_of_folder(target, data_card.paths(target, is_folder=True))
    names = [f".{name}" for name in SIDECARS] if format_.lost.provenance else []
    paths = [target, *(path_beside(target, name) for name in names), *data_card.paths(target)]
    return destination.problems(paths, overwrite)


def _json(card: dict[str, Any]) -> str:
    return json.dumps(card, indent=2, ensure_ascii=False) + "\n"
