"""The image folders of a source: listed, compared with the project and registered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotator.errors import combine_problems
from annotator.exchange.sources.source import FolderPaths
from annotator.humanize import format_count
from annotator.progress_callbacks import ProgressCallback, StepCallback
from annotator.records import BadFile
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.file_differences import find_differences, find_same_contents
from annotator.store.images.registration import RegistrationResult, load_file_states, register_folder
from annotator.store.imports.past_imports import find_undone_files
from annotator.store.pictures.bands import UNCHOSEN_REASON
from annotator.store.pictures.files import FolderListing, list_files
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES, looks_like_image

MAX_NAMED_FILES = 3  # files that are named


@dataclass(frozen=True)
class ListedFolder:
    """A listed image folder, with its differences from the registered files."""

    path: Path
    listing: FolderListing
    new: Sequence[str]
    # registered files that no longer exist
    missing: Sequence[str] = ()
    # registered files with another size, time or disk location
    changed: Sequence[str] = ()
    # files of images removed by an undo
    returning: int = 0
    # new file -> id of the image with equal content, not added
    duplicates: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Return whether registering the folder does more than add new images."""
        return bool(self.missing or self.changed or self.returning)

    def format_sentences(self) -> Iterator[str]:
        yield from self.listing.left_out.format_sentences()
        if self.returning:
            yield f"{format_count(self.returning, 'image')} of an import that was taken back or never ended come back."
        if self.missing:
            verb = "is" if len(self.missing) == 1 else "are"
            yield (
                f"{format_count(len(self.missing), 'file')} of {self.path} {verb} gone: "
                f"{_format_examples(self.missing)}."
            )
        if self.changed:
            yield (
                f"{format_count(len(self.changed), 'file')} of {self.path} may have changed: "
                f"{_format_examples(self.changed)}."
            )


def _format_examples(paths: Sequence[str]) -> str:
    return ", ".join(f"{path!a}" for path in paths[:MAX_NAMED_FILES]) + (
        ", ..." if len(paths) > MAX_NAMED_FILES else ""
    )


def list_folders(
    db: Database | None,
    folders: FolderPaths,
    project: Path,
    images_only: bool,
    progress: StepCallback | None = None,
    *,
    copies: bool = False,
) -> list[ListedFolder]:
    """List folders and compare them with the project. New files of a known size are compared by content.

    Args:
        db: None for a new project.
        images_only: Do not count other files as skipped.
        copies: Register copies as further files of their image.
    """
    shown = (lambda done, of: progress("Comparing images", done, of)) if progress else None
    return [_list_folder(db, path, wanted, project, images_only, shown, copies) for path, wanted in folders]


def _list_folder(
    db: Database | None,
    path: Path,
    wanted: list[str] | None,
    project: Path,
    images_only: bool,
    progress: ProgressCallback | None,
    copies: bool,
) -> ListedFolder:
    known = load_file_states(db, path) if db else {}
    if wanted is None:
        listing = list_files(path, leave_out=project, known=known)
        if images_only:
            paths = [file for file in listing.paths if file in known or looks_like_image(file)]
            listing = replace(listing, paths=paths)
    else:  # registered files that are not in the list are kept
        there = [file for file in known if (path / file).exists()]
        listing = FolderListing(sorted({*wanted, *there}), [])
    gone, changed = find_differences(path, known, listing.paths)
    new = [file for file in listing.list_images() if file not in known]
    held = find_same_contents(db, path, new, progress) if db and new and not copies else {}
    if held:
        listing = replace(listing, paths=[file for file in listing.paths if file not in held])
        new = [file for file in new if file not in held]
    back = len(find_undone_files(db, path).intersection(listing.paths)) if db else 0
    return ListedFolder(path, listing, new, gone, changed, back, held)


def check_has_images(folder: Path, listing: FolderListing) -> None:
    """Raise AnnotatorError if the folder of a new project has no image."""
    if not listing.list_images():
        raise combine_problems(
            f"No image was found in {folder} or below it ({len(listing.paths):,} other files, "
            f"{len(listing.kept_out):,} folders that cannot be read). Read are: {', '.join(sorted(IMAGE_SUFFIXES))}.",
            listing.left_out.format_sentences(),
        )


def check_usable_images(name: str, result: RegistrationResult) -> None:
    """Raise AnnotatorError if a new project would get no usable image."""
    if result.bad and not result.added and not any(UNCHOSEN_REASON in bad.reason for bad in result.bad):
        raise combine_problems(f"No image of {name} can be used:", describe_skipped_files(result.bad))


def describe_skipped_files(bad: Sequence[BadFile]) -> list[str]:
    """Return a sentence with number and example per reason for skipped files."""
    groups = images.group_by_reason(bad).items()
    return [f"{format_count(len(paths), 'file')} skipped: {reason} (such as {paths[0]!a})" for reason, paths in groups]


def check_no_unread_pictures(folder: Path) -> None:
    """Raise AnnotatorError for a folder with only unsupported pictures."""
    listing = list_files(folder, leave_out=folder)
    if listing.left_out.unread and not listing.list_images():
        raise combine_problems(f"There is no image in {folder} that is read here:", listing.left_out.format_sentences())


def register_folders(
    db: Database, folders: Sequence[ListedFolder], progress: ProgressCallback | None = None
) -> RegistrationResult:
    """Register listed folders, and return the sum of their results. The call is idempotent."""
    result = RegistrationResult()
    for folder in folders:
        one = register_folder(db, folder.path, folder.listing.paths, progress, folder.listing.kept_out)
        result = replace(
            result,
            added=result.added + one.added,
            known=result.known + one.known,
            moved=result.moved + one.moved,
            copies=result.copies + one.copies,
            bad=[*result.bad, *one.bad],
            missing=[*result.missing, *one.missing],
        )
        result.notes.merge(one.notes)
    return result
