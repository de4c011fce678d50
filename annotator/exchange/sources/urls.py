"""Addresses of object stores and web servers, read with fsspec: https://filesystem-spec.readthedocs.io.

First everything below the address is listed, page by page, in the manifest. Then new and changed files are downloaded,
eight at a time; a file whose version (ETag, size or time) is unchanged is not. A download that was cut off by a kill is
resumed if the server can send parts of a file. http servers are asked for their index page and for the head of each
file; web.py limits their answers and redirects.
"""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError, several
from annotator.exchange.sources.landing import Landing, UnsafeNameError, fetched, is_wanted, landing
from annotator.exchange.sources.source import Fetched, Progress
from annotator.exchange.sources.tar_archive import ENDINGS as TARS
from annotator.store.disk.fetched_manifest import Entry
from annotator.store.locations import web
from annotator.store.locations.addresses import HIDDEN, Address, redacted
from annotator.store.locations.file_systems import call_with_retry, failed, file_system
from annotator.store.locations.listing import Remote, listed, of_info

AT_A_TIME = 8  # downloads
PAGE = 1000  # downloads that are in memory
CHUNK = 8 << 20  # bytes of one request
SHOWN_EVERY = 0.5  # seconds
ARCHIVES = (".zip", ".parquet", ".arrow", *TARS)


def fetch(address: Address, project: Path, progress: Progress | None, may_be_own: bool = True) -> Fetched:
    """Download files that are new or have changed. Raises AnnotatorError that names the address without its secrets."""
    files = file_system(address, may_be_own)
    name = unquote(urlsplit(address.plain).path.rstrip("/").rpartition("/")[2]) or address.host or "images"
    with landing(project, str(address), name, progress) as place:
        try:
            for number, remote in enumerate(listed(files, address, is_file_name), start=1):
                _meet(remote, place)
                if number % 100 == 0:
                    place.show("Listing", number)
            place.manifest.commit()
            _check_any(place, address)
            _download_all(files, place, address)
            for part in place.folder.glob(".part-*"):
                part.unlink(missing_ok=True)
            return fetched(place)
        except AnnotatorError:
            raise
        except Exception as error:
            raise failed(address, error) from None


def is_file_name(path: str) -> bool:
    """Return whether a path ends like an image, a file of labels, an archive or a table; else it is a folder."""
    return is_wanted_here(PurePosixPath(path).name)


def is_wanted_here(name: str) -> bool:
    """Return whether a file of this name is downloaded: images, labels, archives and tables."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    return is_wanted(name) or (name.lower().endswith(ARCHIVES) and not hidden)


def _meet(remote: Remote, place: Landing) -> None:
    if not is_wanted_here(remote.name):
        place.pass_over(remote.name)
        return
    key = place.key_of(remote.path.split("?")[0] if "://" in remote.path else remote.path)
    key = redacted(key) if "://" in key else key
    try:
        place.register_entry(key, remote.name, remote.size, remote.stamp)
    except UnsafeNameError as error:
        place.problems.add(f"{remote.name!a}: {error}")


def _check_any(place: Landing, address: Address) -> None:
    place.finish()
    count, size = place.manifest.counts()
    if not count:
        raise several(
            f"There is no image and no file of labels at {address} ({place.passed_over:,} others). Is the bucket and "
            "the path spelled right? A web server has to show an index page of the folder.",
            place.left_out.said(),
        )
    place.check_room(size if place.new == count else 0)


def _download_all(files: Any, place: Landing, address: Address) -> None:
    """Download all waiting entries, page by page. Files that are complete stay, even if an error ends the work."""
    total = place.fetched
    done, after, stop = 0, "", threading.Event()
    pool = ThreadPoolExecutor(AT_A_TIME)
    try:
        while page := place.manifest.waiting(PAGE, after):
            after = page[-1].key
            futures = [pool.submit(_download, files, entry, place, address, stop) for entry in page]
            for entry, future in zip(page, futures, strict=True):
                while not wait([future], SHOWN_EVERY).done:
                    place.show("Downloading", done, total)
                _land(entry, future, place)
                done += 1
                place.show("Downloading", done, total)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        place.manifest.commit()
        for part in place.folder.glob(".part-*"):
            if not part.stat().st_size:
                part.unlink()


def _land(entry: Entry, future: "Future[Path]", place: Landing) -> None:
    part = future.result()
    place.coming.pop(part, None)
    place.landed(entry, part, part.stat().st_size)


def _download(files: Any, entry: Entry, place: Landing, address: Address, stop: threading.Event) -> Path:
    """Download one file; return its temporary path, where it stays until it gets its name."""
    digest = hashlib.sha256(f"{entry.key}\0{entry.stamp}".encode()).hexdigest()[:24]
    part = place.folder / f".part-{digest}"
    path = _plain_of(entry.key, address)
    if entry.stamp in ("", f"size:{entry.bytes}"):  # without a version, a part cannot be resumed
        part.unlink(missing_ok=True)

    def came(size: int) -> None:
        place.coming[part] = size
        place.check_room(place.bytes + sum(list(place.coming.values())))

    if address.is_web:
        call_with_retry(web.download, files, path, part, entry.bytes, partial(_is_version, entry), stop, came)
    else:
        _download_parts(files, entry, path, part, stop, came)
    return part


def _is_version(entry: Entry, headers: Any) -> bool:
    facts = {name: headers.get(name) for name in ("ETag", "Content-MD5", "Last-Modified")}
    return of_info({"name": ""} | facts, "").stamp == entry.stamp


def _download_parts(
    files: Any, entry: Entry, path: str, part: Path, stop: threading.Event, came: Callable[[int], None]
) -> None:
    """Download a file from an object store in requests of CHUNK bytes, and check that all are of the same version."""
    with part.open("ab") as file:
        start = file.tell()
        if start > entry.bytes:
            file.truncate(start := 0)
        is_whole = start == 0 and entry.bytes <= CHUNK
        version = "" if is_whole else of_info(call_with_retry(files.info, path), "").stamp
        while start < entry.bytes:
            if stop.is_set():
                raise AnnotatorError("stopped")
            span = {} if is_whole else {"start": start, "end": min(start + CHUNK, entry.bytes)}
            content = call_with_retry(files.cat_file, path, **span)
            if start + len(content) != span.get("end", entry.bytes):
                file.truncate(0)
                raise _changed(path)
            file.write(content)
            start += len(content)
            came(start)
        if not is_whole and of_info(call_with_retry(files.info, path), "").stamp != version:
            file.truncate(0)
            raise _changed(path)


def _changed(path: str) -> AnnotatorError:
    return AnnotatorError(f"{redacted(path)} has changed while it was read. Give the same command again.")


def _plain_of(key: str, address: Address) -> str:
    """Return the address or path of an entry in full, with the user and secrets that its key leaves out."""
    if address.redacted.split("?")[0] == key:
        return address.plain
    user = urlsplit(address.plain).netloc.rpartition("@")[0]
    return key.replace(f"//{HIDDEN}@", f"//{user}@", 1) if user else key
