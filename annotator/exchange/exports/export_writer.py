"""Export of a data set and its data card in one transaction, all files or none."""

import glob
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from annotator.errors import combine_problems
from annotator.exchange.croissant.croissant_document import ExportedFiles, build_document, find_missing_facts
from annotator.exchange.croissant.croissant_facts import load_facts
from annotator.exchange.croissant.croissant_records import write_records
from annotator.exchange.exports import data_card, destination
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet, open_data_set
from annotator.exchange.exports.image_files import LinkRecorder, Placer
from annotator.exchange.exports.losses import LossyExportError, find_losses
from annotator.exchange.exports.output import FileOutput, FolderOutput, path_beside
from annotator.exchange.exports.tagged_cells import write_tag_cells
from annotator.exchange.formats import find_format
from annotator.exchange.formats.export_view import Block, View
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.croissant_names import CROISSANT_NAME, CROISSANT_RECORDS_NAME
from annotator.exchange.formats.shared.sidecars import SIDECAR_NAMES, SidecarWriter
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database import new_folders
from annotator.store.database.arrays import remove_unfinished_files
from annotator.store.database.database import Database
from annotator.store.database.files_together import finish_renaming, replace_files_together
from annotator.store.database.new_folders import replace_folder_atomically
from annotator.store.labels import tagged_exports
from annotator.store.labels.tagged_exports import Tag


@dataclass(frozen=True)
class ExportTag:
    """The version name (tag) to store for an export once it is written."""

    name: str
    by: str = ""
    # location of the export that the tag records. "" records the target
    place: str = ""


@dataclass(frozen=True)
class ExportJob:
    """Callbacks by which the process that writes an export shows progress and cancels it."""

    # called with (images counted, all images), and by `write_export` with (images written, all images). An exception
    # cancels the export without leaving files
    progress: ProgressCallback | None = None
    # called before each image file. An exception cancels likewise
    check: Callable[[], None] | None = None
    # the folder will be zipped and deleted at once, so its images may be links
    will_be_zipped: bool = False


@dataclass(frozen=True, eq=False)
class PreparedExport:
    """An export that has been checked, and can be written while its transaction is open."""

    db: Database
    data: DataSet
    target: Path
    format: Format
    choices: Choices
    card: dict[str, Any]
    # shown to the user before writing
    sentences: list[str]
    overwrite: bool = False
    tag: ExportTag | None = None
    job: ExportJob = ExportJob()
    # paths of the files with the cells for its tag, filled in by `write_export`
    tag_files: list[Path] = field(default_factory=list)
    # hard-linked image files. Linking changes the file state by which they count as unchanged
    linked: LinkRecorder = field(default_factory=LinkRecorder)

    @property
    def is_folder(self) -> bool:
        return not self.format.ending


@contextmanager
def prepare_export(
    db: Database,
    target: Path,
    format_name: str,
    choices: Choices | None = None,
    *,
    overwrite: bool = False,
    lossy: bool = False,
    tag: ExportTag | None = None,
    job: ExportJob = ExportJob(),
) -> Generator[PreparedExport]:
    """Check whether an export can be written, and yield it for `write_export` within the `with` block.

    Writes nothing, except that it completes an earlier export to `target` that was killed while renaming its
    files.

    Args:
        overwrite: Also replace files that no export has written. Folders are replaced only if an export wrote
            them.
        lossy: Allow data loss.
        tag: Tag of the export, set after the block.

    Raises:
        AnnotatorError: The format is unknown, target or choices are invalid (lists all problems), or the format
            would lose labels (with the counts).
    """
    format_, choices = find_format(format_name, "write"), choices or Choices()
    choices = replace(choices, images=choices.images or format_.images)
    if format_.ending:
        finish_renaming(target)
    problems = choices.problems() + choices.problems_of_format(format_)
    problems += _find_target_problems(target, format_, overwrite, choices.croissant)
    if tag:
        db.check_writable()
        problems += [problem for problem in [tagged_exports.find_name_problem(db, tag.name)] if problem]
    if problems:
        raise combine_problems("Nothing was exported:", problems)
    with open_data_set(db, choices, names_files=not format_.ending, progress=job.progress) as data:
        lost = find_losses(format_, data.tallies)
        if lost and not lossy:
            raise LossyExportError(lost)
        lost = [loss.past_tense for loss in lost]
        name = tag.name if tag else ""
        card = data_card.build_card(data, data_card.load_quality(db), [target.name], choices, name, lost)
        data = replace(data, view=replace(data.view, card=card))
        filled = data.fill.sentences() if data.fill else []
        said = [*filled, *data.sentences, *lost]
        prepared = PreparedExport(db, data, target, format_, choices, card, said, overwrite, tag, job)
        try:
            yield prepared
        except BaseException:
            for path in prepared.tag_files:
                path.unlink(missing_ok=True)
            raise
    prepared.linked.record(db)
    if tag:
        newest, place = card["certificate"]["last_decision"], tag.place or str(target.resolve())
        row = Tag(0, tag.name, tag.by, 0.0, newest, format_.name, place, choices.as_json(), card)
        for path in prepared.tag_files:
            tagged_exports.save_tag(db, row, path)


def write_export(export: PreparedExport) -> list[Path]:
    """Write data set and card, all or nothing, and return the paths. Raises DiskFull."""
    written = _write_folder(export) if export.is_folder else _write_files(export)
    if export.tag:
        export.tag_files.append(write_tag_cells(export.db, export.data, export.job.progress))
    return written


def _write_files(export: PreparedExport) -> list[Path]:
    target = export.target
    remove_unfinished_files(target.parent, f".{glob.escape(target.stem)}.*")  # removes files left by killed exports
    card_md, card_json = data_card.paths(target)
    with replace_files_together(target) as files:
        out = FileOutput(target, files, export.overwrite)
        _write_format(export, out, [f".{name}" for name in SIDECAR_NAMES])
        card = export.card | {"files": [path.name for path in out.paths()]}
        with out.open_text(card_md.name.removeprefix(target.stem)) as file:
            file.write(data_card.format_markdown(card))
        _write_croissant(export, out, card, ".")
        sealed = destination.seal_card(card, card_json, out.hash_files())
        with out.open_text(card_json.name.removeprefix(target.stem)) as file:
            file.write(_format_json(sealed))
        return out.paths()


def export_data_set(
    db: Database,
    target: Path,
    format_name: str,
    choices: Choices | None = None,
    *,
    overwrite: bool = False,
    lossy: bool = False,
    tag: str = "",
    by: str = "",
    progress: ProgressCallback | None = None,
) -> tuple[DataSet, list[Path]]:
    options: dict[str, Any] = {"overwrite": overwrite, "lossy": lossy, "tag": ExportTag(tag, by) if tag else None}
    with prepare_export(db, target, format_name, choices, **options, job=ExportJob(progress)) as prepared:
        return prepared.data, write_export(prepared)


def build_current_card(
    db: Database, files: list[str], choices: Choices | None = None, progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Return the data card that an export of the current labels would have."""
    choices = choices or Choices()
    with open_data_set(db, choices, progress=progress) as data:
        return data_card.build_card(data, data_card.load_quality(db), files, choices)


def _write_folder(export: PreparedExport) -> list[Path]:
    target = export.target
    new_folders.remove_unfinished_folders(target.parent, target.name)
    with replace_folder_atomically(target) as folder:
        chosen = export.choices
        options: dict[str, Any] = {"packed": export.job.will_be_zipped, "check": export.job.check}
        placer = Placer(export.db, chosen.images, chosen.pixels, export.linked, **options)
        out = FolderOutput(folder, placer)
        _write_format(export, out, list(SIDECAR_NAMES))
        card = export.card | {"choices_in_words": [*export.card["choices_in_words"], *placer.format_sentences()]}
        files = out.names()[: data_card.MAX_FILES_NAMED]  # without the names of the cards, which are written below
        card_md, card_json = data_card.paths(folder, is_folder=True)
        with out.open_text(card_md.name) as file:
            file.write(data_card.format_markdown(card))  # its "files" is the folder's name; the JSON card lists files
        _write_croissant(export, out, card)
        sealed = destination.seal_card(card | {"files": files}, card_json, *out.hash_files())
        card_json.write_text(_format_json(sealed), encoding="utf-8")
    export.sentences.extend([*export.data.view.sentences, *placer.format_sentences()])
    return [target]


def _write_format(export: PreparedExport, out: FileOutput | FolderOutput, sidecars: list[str]) -> None:
    format_, view = export.format, export.data.view
    assert format_.write is not None  # checked by find_format
    if export.job.progress:
        view = replace(view, blocks=partial(_report_blocks, view, export.job.progress))
    if not format_.lost.provenance:
        format_.write(view, out)
        return
    with SidecarWriter(view, out, *sidecars) as beside_it:
        format_.write(replace(view, blocks=beside_it.blocks), out)


def _write_croissant(
    export: PreparedExport, out: FileOutput | FolderOutput, card: dict[str, Any], mark: str = ""
) -> None:
    """Write the Croissant description, which has the hashes of all files but the JSON card, and its records."""
    if not export.choices.croissant:
        return
    with out.open_text(mark + CROISSANT_RECORDS_NAME) as file:
        write_records(export.data.view, file)
    labels = out.list_label_files()
    [records] = [name for name in labels if name.endswith(CROISSANT_RECORDS_NAME)]
    files = ExportedFiles(labels, records, out.count_images())
    document = build_document(card, load_facts(export.db), export.db.paths.project.resolve().name, files)
    with out.open_text(mark + CROISSANT_NAME) as file:
        file.write(_format_json(document))
    if missing := find_missing_facts(document):
        export.sentences.append(
            f"{CROISSANT_NAME} lacks {', '.join(missing)}. "
            "Fill them in on the Export page, or add --croissant-facts FILE."
        )


def _report_blocks(view: View, progress: ProgressCallback) -> Iterator[Block]:
    """Yield the blocks, and report progress on each when the next one is requested."""
    done = 0
    for block in view.blocks():
        yield block
        done += len(block.images)
        progress(done, view.images)


def _find_target_problems(target: Path, format_: Format, overwrite: bool, has_croissant: bool) -> list[str]:
    if not format_.ending:
        return destination.find_folder_problems(target, data_card.paths(target, is_folder=True))
    names = [f".{name}" for name in SIDECAR_NAMES] if format_.lost.provenance else []
    names += [f".{name}" for name in (CROISSANT_NAME, CROISSANT_RECORDS_NAME)] if has_croissant else []
    paths = [target, *(path_beside(target, name) for name in names), *data_card.paths(target)]
    return destination.find_problems(paths, overwrite)


def _format_json(card: dict[str, Any]) -> str:
    return json.dumps(card, indent=2, ensure_ascii=False) + "\n"
