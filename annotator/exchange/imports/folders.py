"""The folders of images of a source: listed, compared with the files of the project, and registered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotator.errors import several
from annotator.exchange.sources.source import Paths, Progress
from annotator.records import BadFile
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.file_differences import differences, same_contents
from annotator.store.images.registration import Registered, files_of, register
from annotator.store.imports.imports import taken_back_files
from annotator.store.pictures.bands import TO_CHOOSE
from annotator.store.pictures.files import Listing, list_files
from annotator.store.pictures.kinds import IMAGE_SUFFIXES, looks_like_image

SHOWN = 3  # files that are named


@dataclass(frozen=True)
class Folder:
    """A listed folder with images, and how it differs from the files registered in the project.

    Attributes:
        listing: The files of the folder.
        new: Images of the folder that are not registered.
        gone: Registered files that are missing.
        changed: Registered files with another size, time or place on the disk than recorded.
        back: Number of files whose image was taken back with an import, and comes back.
        held: Unregistered file -> id of the image with the same content, of which the project has another file; these
            files are not added.
    """

    path: Path
    listing: Listing
    new: Sequence[str]
    gone: Sequence[str] = ()
    changed: Sequence[str] = ()
    back: int = 0
    held: Mapping[str, int] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Return whether registering the folder changes more than adding new images."""
        return bool(self.gone or self.changed or self.back)

    def said(self) -> Iterator[str]:
        """Yield sentences to show before registering: what is left out, missing or changed, and what comes back."""
        yield from self.listing.left_out.said()
        if self.back:
            yield f"{counted(self.back, 'image')} of an import that was taken back or never ended come back."
        if self.gone:
            verb = "is" if len(self.gone) == 1 else "are"
            yield f"{counted(len(self.gone), 'file')} of {self.path} {verb} gone: {_examples(self.gone)}."
        if self.changed:
            yield f"{counted(len(self.changed), 'file')} of {self.path} may have changed: {_examples(self.changed)}."


def _examples(paths: Sequence[str]) -> str:
    return ", ".join(f"{path!a}" for path in paths[:SHOWN]) + (", ..." if len(paths) > SHOWN else "")


def listed(
    db: Database | None,
    folders: Paths,
    project: Path,
    images_only: bool,
    progress: Progress | None = None,
    *,
    copies: bool = False,
) -> list[Folder]:
    """List the folders and compare them with the project: files of the same size as an image also by content.

    Args:
        db: The project, None if it is not made yet.
        folders: The folders, each with the paths in it that are wanted.
        project: The project folder, which is left out.
        images_only: Other files of a data set are not counted as skipped images.
        progress: Called with (state, done, of).
        copies: Files with the content of an image are registered as further files of it, not left out.

    Raises:
        AnnotatorError: A folder is missing or cannot be read.
    """
    shown = (lambda done, of: progress("Comparing images", done, of)) if progress else None
    return [_listed(db, path, wanted, project, images_only, shown, copies) for path, wanted in folders]


def _listed(
    db: Database | None,
    path: Path,
    wanted: list[str] | None,
    project: Path,
    images_only: bool,
    progress: Callable[[int, int], None] | None,
    copies: bool,
) -> Folder:
    known = files_of(db, path) if db else {}
    if wanted is None:
        listing = list_files(path, leave_out=project, known=known)
        if images_only:
            paths = [file for file in listing.paths if file in known or looks_like_image(file)]
            listing = replace(listing, paths=paths)
    else:  # registered files that are not in the list are kept
        there = [file for file in known if (path / file).exists()]
        listing = Listing(sorted({*wanted, *there}), [])
    gone, changed = differences(path, known, listing.paths)
    new = [file for file in listing.images() if file not in known]
    held = same_contents(db, path, new, progress) if db and new and not copies else {}
    if held:
        listing = replace(listing, paths=[file for file in listing.paths if file not in held])
        new = [file for file in new if file not in held]
    back = len(taken_back_files(db, path).intersection(listing.paths)) if db else 0
    return Folder(path, listing, new, gone, changed, back, held)


def refuse_without_images(folder: Path, listing: Listing) -> None:
    """Raise AnnotatorError if the folder has no image, so that no new project can be made from it."""
    if not listing.images():
        raise several(
            f"No image was found in {folder} or below it ({len(listing.paths):,} other files, "
            f"{len(listing.kept_out):,} folders that cannot be read). Read are: {', '.join(sorted(IMAGE_SUFFIXES))}.",
            listing.left_out.said(),
        )


def refuse_unusable(name: str, result: Registered) -> None:
    """Raise AnnotatorError if a new project would get no image, because none can be used: why, and what helps.

    Files that wait for a choice of bands can be used: they come once it is made.
    """
    if result.bad and not result.added and not any(TO_CHOOSE in bad.reason for bad in result.bad):
        raise several(f"No image of {name} can be used:", kept_out_in_words(result.bad))


def kept_out_in_words(bad: Sequence[BadFile]) -> list[str]:
    """Return one sentence per reason why files were left out, with the number of files and an example."""
    groups = images.by_reason(bad).items()
    return [f"{counted(len(paths), 'file')} skipped: {reason} (such as {paths[0]!a})" for reason, paths in groups]


def refuse_unread_pictures(folder: Path) -> None:
    """Raise AnnotatorError if a folder without images has pictures that are not read here: which, and what helps."""
    listing = list_files(folder, leave_out=folder)
    if listing.left_out.unread and not listing.images():
        raise several(f"There is no image in {folder} that is read here:", listing.left_out.said())


def registered(
    db: Database, folders: Sequence[Folder], progress: Callable[[int, int], None] | None = None
) -> Registered:
    """Register the listed folders and return the results added up. Repeating it changes nothing."""
    result = Registered()
    for folder in folders:
        one = register(db, folder.path, folder.listing.paths, progress, folder.listing.kept_out)
        result = replace(
            result,
            added=result.added + one.added,
            known=result.known + one.known,
            moved=result.moved + one.moved,
            copies=result.copies + one.copies,
            bad=[*result.bad, *one.bad],
            missing=[*result.missing, *one.missing],
        )
        result.notes.add(one.notes)
    return result
