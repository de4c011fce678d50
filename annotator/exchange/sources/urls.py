"""Download from object stores and web servers with fsspec (https://filesystem-spec.readthedocs.io).

The manifest first lists all files. New and changed ones (by ETag, size or time) are downloaded in parallel, resumably
if the server supports ranges.
"""

import hashlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.sources.fetch_folder import (
    FetchFolder,
    UnsafeNameError,
    build_fetched,
    is_wanted_file,
    open_fetch_folder,
)
from annotator.exchange.sources.source import FetchedFiles
from annotator.exchange.sources.tar_archive import TAR_SUFFIXES
from annotator.progress_callbacks import ProgressCallback, StepCallback
from annotator.store.disk.fetched_manifest import Entry
from annotator.store.locations import web_servers
from annotator.store.locations.addresses import REDACTION_MARK, Address, redact_address
from annotator.store.locations.file_systems import build_read_error, call_with_retry, open_file_system
from annotator.store.locations.listing import RemoteFile, list_remote_files, to_remote_file

PARALLEL_DOWNLOADS = 8  # downloads
DOWNLOADS_PER_PAGE = 1000  # downloads that are in memory
REQUEST_BYTES = 8 << 20  # bytes of one request
PROGRESS_SECONDS = 0.5
ARCHIVE_SUFFIXES = (".zip", ".parquet", ".arrow", *TAR_SUFFIXES)


def fetch_address(
    address: Address, project: Path, progress: StepCallback | None, may_be_own: bool = True
) -> FetchedFiles:
    """Download new and changed files. Raises AnnotatorError that names the URL without secrets."""
    files = open_file_system(address, may_be_own)
    name = unquote(urlsplit(address.plain).path.rstrip("/").rpartition("/")[2]) or address.host or "images"
    with open_fetch_folder(project, str(address), name, progress) as place:
        try:
            for number, remote in enumerate(list_remote_files(files, address, is_file_name), start=1):
                _register_remote(remote, place)
                if number % 100 == 0:
                    place.report_progress("Listing", number)
            place.manifest.commit()
            _check_has_files(place, address)
            _download_all(files, place, address)
            for part in place.folder.glob(".part-*"):
                part.unlink(missing_ok=True)
            return build_fetched(place)
        except AnnotatorError:
            raise
        except Exception as error:
            raise build_read_error(address, error) from None


def is_file_name(path: str) -> bool:
    """Return whether a path ends like a downloadable file, unlike a folder."""
    return is_downloadable(PurePosixPath(path).name)


def is_downloadable(name: str) -> bool:
    """Return whether a name is a visible image, label file, archive or table."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    return is_wanted_file(name) or (name.lower().endswith(ARCHIVE_SUFFIXES) and not hidden)


def _register_remote(remote: RemoteFile, place: FetchFolder) -> None:
    if not is_downloadable(remote.name):
        place.skip_entry(remote.name)
        return
    key = place.make_key(remote.path.split("?")[0] if "://" in remote.path else remote.path)
    key = redact_address(key) if "://" in key else key
    try:
        place.register_entry(key, remote.name, remote.size, remote.stamp)
    except UnsafeNameError as error:
        place.problems.add(f"{remote.name!a}: {error}")


def _check_has_files(place: FetchFolder, address: Address) -> None:
    place.finish()
    count, size = place.manifest.count_seen()
    if not count:
        raise combine_problems(
            f"There is no image and no file of labels at {address} ({place.skipped:,} others). Is the bucket and the "
            "path spelled right? A web server has to show an index page of the folder.",
            place.left_out.format_sentences(),
        )
    place.check_disk_space(size if place.new == count else 0)


def _download_all(files: Any, place: FetchFolder, address: Address) -> None:
    total = place.fetched
    done, after, stop = 0, "", threading.Event()
    pool = ThreadPoolExecutor(PARALLEL_DOWNLOADS)
    try:
        while page := place.manifest.list_waiting(DOWNLOADS_PER_PAGE, after):
            after = page[-1].key
            futures = [pool.submit(_download_file, files, entry, place, address, stop) for entry in page]
            for entry, future in zip(page, futures, strict=True):
                while not wait([future], PROGRESS_SECONDS).done:
                    place.report_progress("Downloading", done, total)
                _finish_download(entry, future, place)
                done += 1
                place.report_progress("Downloading", done, total)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        place.manifest.commit()
        for part in place.folder.glob(".part-*"):
            if not part.stat().st_size:
                part.unlink()


def _finish_download(entry: Entry, future: "Future[Path]", place: FetchFolder) -> None:
    part = future.result()
    place.bytes_in_flight.pop(part, None)
    place.finish_entry(entry, part, part.stat().st_size)


def _download_file(files: Any, entry: Entry, place: FetchFolder, address: Address, stop: threading.Event) -> Path:
    digest = hashlib.sha256(f"{entry.key}\0{entry.stamp}".encode()).hexdigest()[:24]
    part = place.folder / f".part-{digest}"
    path = _build_full_address(entry.key, address)
    if entry.stamp in ("", f"size:{entry.bytes}"):  # without a version, a part cannot be resumed
        part.unlink(missing_ok=True)

    def came(done: int, of: int) -> None:
        place.bytes_in_flight[part] = done
        place.check_disk_space(place.bytes + sum(list(place.bytes_in_flight.values())))

    if address.is_web:
        call_with_retry(
            web_servers.download, files, path, part, entry.bytes, partial(_has_same_version, entry), stop, came
        )
    else:
        _download_parts(files, entry, path, part, stop, came)
    return part


def _has_same_version(entry: Entry, headers: Any) -> bool:
    facts = {name: headers.get(name) for name in ("ETag", "Content-MD5", "Last-Modified")}
    return to_remote_file({"name": ""} | facts, "").stamp == entry.stamp


def _download_parts(
    files: Any, entry: Entry, path: str, part: Path, stop: threading.Event, came: ProgressCallback
) -> None:
    """Download an object in parts of REQUEST_BYTES, all checked to be of one version."""
    with part.open("ab") as file:
        start = file.tell()
        if start > entry.bytes:
            file.truncate(start := 0)
        is_whole = start == 0 and entry.bytes <= REQUEST_BYTES
        version = "" if is_whole else to_remote_file(call_with_retry(files.info, path), "").stamp
        while start < entry.bytes:
            if stop.is_set():
                raise AnnotatorError("stopped")
            span = {} if is_whole else {"start": start, "end": min(start + REQUEST_BYTES, entry.bytes)}
            content = call_with_retry(files.cat_file, path, **span)
            if start + len(content) != span.get("end", entry.bytes):
                file.truncate(0)
                raise _changed_error(path)
            file.write(content)
            start += len(content)
            came(start, entry.bytes)
        if not is_whole and to_remote_file(call_with_retry(files.info, path), "").stamp != version:
            file.truncate(0)
            raise _changed_error(path)


def _changed_error(path: str) -> AnnotatorError:
    return AnnotatorError(f"{redact_address(path)} has changed while it was read. Give the same command again.")


def _build_full_address(key: str, address: Address) -> str:
    if address.redacted.split("?")[0] == key:
        return address.plain
    user = urlsplit(address.plain).netloc.rpartition("@")[0]
    return key.replace(f"//{REDACTION_MARK}@", f"//{user}@", 1) if user else key
