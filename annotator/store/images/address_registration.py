"""Registering the images at an address, which are read where they lie; registration.py does the same with a folder.

First all names are listed into a temporary file, page by page; then those that are new or have another state (ETag,
size or time) are inspected. Identity is the SHA-256 of the content: the store's own where it keeps one, else the file
is read once. After a kill the same call continues: names that were listed are not listed again, and images that were
registered are not inspected again.
"""

import hashlib
import io
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from annotator.errors import AnnotatorError, NoAnswer, several
from annotator.store.database.database import Database
from annotator.store.images.band_setting import shown_bands
from annotator.store.images.registration import Registered, Scan, count_registration
from annotator.store.locations import staged_listing
from annotator.store.locations.addresses import Address
from annotator.store.locations.file_systems import failed
from annotator.store.locations.listing import is_sorted, listed
from annotator.store.locations.objects import NOT_NOW, Objects, folder_of, objects_at
from annotator.store.locations.staged_listing import Listed, StagedListing, is_no_path
from annotator.store.pictures.bands import Bands
from annotator.store.pictures.decoding import BadImage, check_image
from annotator.store.pictures.files import NOT_READ, FoundFile, unescaped
from annotator.store.pictures.kinds import looks_like_image
from annotator.store.pictures.leftovers import leftover_of

AT_ONCE = 2000  # files in one transaction: a kill loses at most this many
READERS = 32  # requests at a time
REFUSED_MOST = 100  # files of a batch, and half of it
LIBRARIES = ("botocore", "aiobotocore", "aiohttp", "azure", "gcsfs", "huggingface_hub", "httpx", "requests")

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much (0: not known); what it raises ends the work."""


def register_address(db: Database, named: Address, progress: Progress | None = None) -> Registered:
    """Register the images at an address: every content once, every bad file with its reason.

    Safe to repeat and to kill. Raises AnnotatorError for an address that has secrets in it, cannot be listed, or holds
    no image; NoAnswer when it stops answering: images registered until then stay.
    """
    db.refuse_read_only()
    folder, shown = folder_of(named), progress or _silent
    address = folder.plain
    if looks_like_image(address):
        raise AnnotatorError(f"{address} is one file. Name the folder of it, or import it without --in-place.")
    objects = objects_at(folder)
    with staged_listing.opened(db.paths.project, address) as staged:
        if not staged.is_complete:
            _list(objects, staged, shown, _known_leftovers(db, address))
        count = staged.count()
        known = db.value("SELECT count(*) FROM file f JOIN folder d ON d.id = f.folder_id WHERE d.path = ?", [address])
        if not count:
            what = f"and {known:,} files are known from it. Nothing was changed" if known else "so nothing was added"
            raise several(
                f"There is no image at {address} ({staged.passed_over:,} other files), {what}. Is the bucket and the "
                "path spelled right?",
                staged.left_out.said(),
            )
        with db.writing() as sql:
            sql.execute("INSERT INTO folder (path) VALUES (?) ON CONFLICT DO NOTHING", [address])
        folder_id = db.value("SELECT id FROM folder WHERE path = ?", [address])
        with staged.attached(db.sql):
            result = _register(db, folder_id, objects, count, shown)
        result.passed_over, result.listed_at = staged.passed_over, staged.resumed_from
        result.left_out = staged.left_out
        return result


def _silent(what: str, done: int, of: int) -> None:
    pass


def _known_leftovers(db: Database, address: str) -> set[str]:
    """Return the registered files of an address that count as leftovers by now; the project keeps them."""
    paths = db.tuples("SELECT f.path FROM file f JOIN folder d ON d.id = f.folder_id WHERE d.path = ?", [address])
    return {path for (path,) in paths if leftover_of(path)}


def _list(objects: Objects, staged: StagedListing, shown: Progress, known: Collection[str]) -> None:
    after = staged.last_listed_name if is_sorted(objects.address) else ""
    shown("Listing", staged.count(), 0)
    try:
        names = listed(objects.files(), objects.address, looks_like_image, after)
        staged.add(names, lambda count: shown("Listing", count, 0), known)
    except AnnotatorError:
        raise
    except OSError as error:
        raise _unlisted(objects.address, error) from None
    except Exception as error:  # botocore and its like have no common kind
        if type(error).__module__.partition(".")[0] not in LIBRARIES:
            raise
        raise _unlisted(objects.address, error) from None


def _unlisted(address: Address, error: Exception) -> AnnotatorError:
    return NoAnswer(str(failed(address, error)))  # the names listed so far are kept


def _register(db: Database, folder_id: int, objects: Objects, count: int, shown: Progress) -> Registered:
    scan = Scan(db, folder_id)
    total = staged_listing.count_changed(db.sql, folder_id)
    bad = staged_listing.still_bad(db.sql, folder_id)
    done, bands = 0, shown_bands(db)
    shown("Registering", done, total)
    pool = ThreadPoolExecutor(READERS)
    try:
        for batch in staged_listing.changed(db.sql, folder_id, AT_ONCE):
            found = [pool.submit(_inspect, objects, file, bands) for file in batch]
            wait(found, return_when=FIRST_EXCEPTION)
            # What was looked into before the address stopped answering is kept.
            scan.keep([future.result() for future in found if future.done() and not future.exception()])
            found = [future.result() for future in found]
            done += len(found)
            shown("Registering", done, total)
            _check_refused(objects.address, found)
    finally:
        pool.shutdown(cancel_futures=True)
    while gone := staged_listing.unlisted_files(db.sql, folder_id, AT_ONCE):
        scan.forget(gone)
    scan.settle()
    scan.result.known += count - total - len(bad)
    scan.result.bad += bad
    count_registration(db)
    return scan.result


def _check_refused(address: Address, found: Sequence[FoundFile]) -> None:
    """Raise NoAnswer where most files are refused, though the address answers: keys that may list and not read."""
    refused = [file for file in found if file.reason.startswith(NOT_NOW)]
    if len(refused) > max(REFUSED_MOST, len(found) // 2):
        raise NoAnswer(
            f"{len(refused):,} of {len(found):,} files at {address} were refused, such as: {refused[0].reason}"
        )


def _inspect(objects: Objects, file: Listed, bands: Bands) -> FoundFile:
    """Return the facts of a listed file, or why it is kept out. Raises NoAnswer where the address does not answer."""
    if is_no_path(unescaped(file.path)):
        return FoundFile(file.path, file.state, reason="its name is no path (it has '..', or '/' at an end or twice)")
    try:
        if sha256 := file.sha256 or (file.has_sha256 and objects.sha256(file.path)):
            return FoundFile(file.path, file.state, sha256)
        content = objects.read(file.path, file.state.bytes, patient=True)
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 == file.was_sha256:
            return FoundFile(file.path, file.state, sha256)
        return FoundFile(file.path, file.state, sha256, check_image(io.BytesIO(content), bands))
    except NoAnswer as error:
        if not objects.answers():
            raise
        # This one alone is refused or broken, such as an archived object: the others are not to wait for it.
        return FoundFile(file.path, NOT_READ, reason=str(error))
    except BadImage as error:
        return FoundFile(file.path, file.state, reason=str(error))
    except AnnotatorError as error:  # gone since it was listed, or too large
        return FoundFile(file.path, NOT_READ, reason=f"cannot be read ({error})")
