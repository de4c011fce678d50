"""The folders of images that a source has become: listed, compared with what the project knows, and registered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.sources.source import Paths, Progress
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.images.registration import Registered, differences, files_of, register, same_contents
from annotator.store.imports.imports import taken_back_files
from annotator.store.pictures.decoding import IMAGE_SUFFIXES
from annotator.store.pictures.files import Listing, list_files, looks_like_image

SHOWN = 3  # files that are named


@dataclass(frozen=True)
class Folder:
    """One folder with images.

    Attributes:
        listing: Of its files.
        new: Images of it that are not registered.
        held: Files that are not registered either -> the image with this content, of which the project has another
            file; they are not added.
        gone: Registered files that are not there any more.
        changed: Registered files that look different from outside: size, time or place on the disk.
        back: Files whose image was taken back with an import, and comes back.
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
        """Whether registering it changes more than adding what is new."""
        return bool(self.gone or self.changed or self.back)

    def said(self) -> Iterator[str]:
        """What a person should know before it is registered."""
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
    """List the folders, and compare files of the size of an image of the project with it.

    Args:
        db: The project, None where it is still to be made.
        images_only: What else lies in a data set is no image that was skipped.
        copies: Files with the content of an image are registered as further files of it, not left out.

    Raises:
        AnnotatorError: For a folder that is missing or cannot be read.
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
        listing = list_files(path, leave_out=project)
        if images_only:
            paths = [file for file in listing.paths if file in known or looks_like_image(file)]
            listing = Listing(paths, listing.kept_out)
    else:  # files of this folder that are registered and not in the list stay what they are
        there = [file for file in known if (path / file).exists()]
        listing = Listing(sorted({*wanted, *there}), [])
    gone, changed = differences(path, known, listing.paths)
    new = [file for file in listing.images() if file not in known]
    held = same_contents(db, path, new, progress) if db and new and not copies else {}
    if held:
        listing = Listing([file for file in listing.paths if file not in held], listing.kept_out)
        new = [file for file in new if file not in held]
    back = len(taken_back_files(db, path).intersection(listing.paths)) if db else 0
    return Folder(path, listing, new, gone, changed, back, held)


def refuse_without_images(folder: Path, listing: Listing) -> None:
    """Raises AnnotatorError for a folder in which a new project would have no image."""
    if not listing.images():
        raise AnnotatorError(
            f"No image was found in {folder} or below it ({len(listing.paths):,} other files, "
            f"{len(listing.kept_out):,} folders that cannot be read). Read are: {', '.join(sorted(IMAGE_SUFFIXES))}."
        )


def registered(
    db: Database, folders: Sequence[Folder], progress: Callable[[int, int], None] | None = None
) -> Registered:
    """Register what was listed; the results of all folders as one. Repeating it changes nothing."""
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
    return result
