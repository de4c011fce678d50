"""Registration of remote images without copying: names are listed, then new or changed ones are inspected."""

import hashlib
import io
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from annotator.errors import AnnotatorError, StorageTimeout, combine_problems
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.registration import FolderScan, RegistrationResult, increment_registrations
from annotator.store.locations import staged_listing
from annotator.store.locations.addresses import Address
from annotator.store.locations.file_systems import build_read_error
from annotator.store.locations.listing import is_sorted, list_remote_files
from annotator.store.locations.remote_files import (
    UNREADABLE_NOW_PROBLEM,
    RemoteFiles,
    get_remote_files,
    to_folder_address,
)
from annotator.store.locations.staged_listing import ListedFile, StagedListing, is_invalid_path
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import BadImage, check_image
from annotator.store.pictures.files import UNREAD_STATE, FoundFile, unescape_path
from annotator.store.pictures.leftovers import find_leftover_part
from annotator.store.pictures.picture_kinds import looks_like_image

FILES_PER_TRANSACTION = 2000  # files in one transaction: a kill loses at most this many
READER_THREADS = 32  # requests at a time
MAX_REFUSED_FILES = 100  # files of a batch, and half of it
NETWORK_LIBRARIES = ("botocore", "aiobotocore", "aiohttp", "azure", "gcsfs", "huggingface_hub", "httpx", "requests")


def register_address(db: Database, named: Address, progress: StepCallback | None = None) -> RegistrationResult:
    """Register the images at a URL, resuming after a kill.

    Raises:
        AnnotatorError: Secrets in the URL, no listing, or no image.
        StorageTimeout: No response. Registered images stay.
    """
    db.check_writable()
    folder, shown = to_folder_address(named), progress or ignore_steps
    address = folder.plain
    if looks_like_image(address):
        raise AnnotatorError(f"{address} is one file. Name the folder of it, or import it without --in-place.")
    objects = get_remote_files(folder)
    with staged_listing.open_listing(db.paths.project, address) as staged:
        if not staged.is_complete:
            _list_files(objects, staged, shown, _find_known_leftovers(db, address))
        count = staged.count()
        known = db.value("SELECT count(*) FROM file f JOIN folder d ON d.id = f.folder_id WHERE d.path = ?", [address])
        if not count:
            what = f"and {known:,} files are known from it. Nothing was changed" if known else "so nothing was added"
            raise combine_problems(
                f"There is no image at {address} ({staged.passed_over:,} other files), {what}. Is the bucket and the "
                "path spelled right?",
                staged.left_out.format_sentences(),
            )
        with db.writing() as sql:
            sql.execute("INSERT INTO folder (path) VALUES (?) ON CONFLICT DO NOTHING", [address])
        folder_id = db.value("SELECT id FROM folder WHERE path = ?", [address])
        with staged.attach(db.sql):
            result = _register_files(db, folder_id, objects, count, shown)
        result.passed_over, result.listed_at = staged.passed_over, staged.resumed_from
        result.left_out = staged.left_out
        return result


def _find_known_leftovers(db: Database, address: str) -> set[str]:
    """Return the registered files whose names now count as leftovers of other software, such as thumbnails."""
    paths = db.tuples("SELECT f.path FROM file f JOIN folder d ON d.id = f.folder_id WHERE d.path = ?", [address])
    return {path for (path,) in paths if find_leftover_part(path)}


def _list_files(objects: RemoteFiles, staged: StagedListing, shown: StepCallback, known: Collection[str]) -> None:
    after = staged.last_listed_name if is_sorted(objects.address) else ""
    shown("Listing", staged.count(), 0)
    try:
        names = list_remote_files(objects.get_file_system(), objects.address, looks_like_image, after)
        staged.add(names, lambda done, of: shown("Listing", done, of), known)
    except AnnotatorError:
        raise
    except OSError as error:
        raise _to_no_answer(objects.address, error) from None
    except Exception as error:  # botocore and its like have no common kind
        if type(error).__module__.partition(".")[0] not in NETWORK_LIBRARIES:
            raise
        raise _to_no_answer(objects.address, error) from None


def _to_no_answer(address: Address, error: Exception) -> AnnotatorError:
    return StorageTimeout(str(build_read_error(address, error)))  # the names listed so far are kept


def _register_files(
    db: Database, folder_id: int, objects: RemoteFiles, count: int, shown: StepCallback
) -> RegistrationResult:
    scan = FolderScan(db, folder_id)
    total = staged_listing.count_changed(db.sql, folder_id)
    bad = staged_listing.load_still_bad(db.sql, folder_id)
    done, bands = 0, get_shown_bands(db)
    shown("Registering", done, total)
    pool = ThreadPoolExecutor(READER_THREADS)
    try:
        for batch in staged_listing.iterate_changed(db.sql, folder_id, FILES_PER_TRANSACTION):
            found = [pool.submit(_inspect_file, objects, file, bands) for file in batch]
            wait(found, return_when=FIRST_EXCEPTION)
            # What was looked into before the address stopped answering is kept.
            scan.save_files([future.result() for future in found if future.done() and not future.exception()])
            found = [future.result() for future in found]
            done += len(found)
            shown("Registering", done, total)
            _check_refused(objects.address, found)
    finally:
        pool.shutdown(cancel_futures=True)
    while gone := staged_listing.find_unlisted_files(db.sql, folder_id, FILES_PER_TRANSACTION):
        scan.remove_files(gone)
    scan.finish()
    scan.result.known += count - total - len(bad)
    scan.result.bad += bad
    increment_registrations(db)
    return scan.result


def _check_refused(address: Address, found: Sequence[FoundFile]) -> None:
    """Raise StorageTimeout if the server refuses most of the files."""
    refused = [file for file in found if file.reason.startswith(UNREADABLE_NOW_PROBLEM)]
    if len(refused) > max(MAX_REFUSED_FILES, len(found) // 2):
        raise StorageTimeout(
            f"{len(refused):,} of {len(found):,} files at {address} were refused, such as: {refused[0].reason}"
        )


def _inspect_file(objects: RemoteFiles, file: ListedFile, bands: BandChoices) -> FoundFile:
    """Return a listed file's facts or rejection reason, or raise StorageTimeout."""
    if is_invalid_path(unescape_path(file.path)):
        return FoundFile(file.path, file.state, reason="its name is no path (it has '..', or '/' at an end or twice)")
    try:
        if sha256 := file.sha256 or (file.has_sha256 and objects.fetch_sha256(file.path)):
            return FoundFile(file.path, file.state, sha256)
        content = objects.read(file.path, file.state.bytes, patient=True)
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 == file.was_sha256:
            return FoundFile(file.path, file.state, sha256)
        return FoundFile(file.path, file.state, sha256, check_image(io.BytesIO(content), bands))
    except StorageTimeout as error:
        if not objects.is_reachable():
            raise
        # This one alone is refused or broken, such as an archived object: the others are not to wait for it.
        return FoundFile(file.path, UNREAD_STATE, reason=str(error))
    except BadImage as error:
        return FoundFile(file.path, file.state, reason=str(error))
    except AnnotatorError as error:  # gone since it was listed, or too large
        return FoundFile(file.path, UNREAD_STATE, reason=f"cannot be read ({error})")
