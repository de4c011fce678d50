"""Addresses of object stores and web servers, read with fsspec: https://filesystem-spec.readthedocs.io.

First everything below the address is listed, page by page into the manifest, then what is new or changed is downloaded,
eight files at a time; a file whose version (ETag, size or time) is as before is not. A file that a kill has cut off is
gone on with where the server can send parts of it. http servers are asked for their index page and, of each file, for
its head; web.py says what they may send, and where their redirects may lead.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError
from annotator.exchange.sources import web
from annotator.exchange.sources.addresses import (
    HIDDEN,
    SCHEMES,
    check_address,
    check_host,
    is_address,
    redacted,
    without_secrets,
)
from annotator.exchange.sources.landing import Landing, UnsafeNameError, fetched, is_wanted, landing
from annotator.exchange.sources.source import Fetched, Progress, Source
from annotator.exchange.sources.tar_archive import ENDINGS as TARS
from annotator.store.manifest import Entry

AT_A_TIME = 8  # downloads
PAGE = 1000  # entries that are in memory
CHUNK = 8 << 20  # bytes of one request
TRIES = 3
WAIT_SECONDS = 1  # before the second try, and twice as much before the third
SHOWN_EVERY = 0.5  # seconds
DEEPEST = 30  # folders
MOST_PAGES = 100_000  # of links, of a web server
ARCHIVES = (".zip", ".parquet", ".arrow", *TARS)


class _Remote(NamedTuple):
    """One file of an address. path: as fsspec names it; name: below the address; size -1 and stamp "": not known."""

    path: str
    name: str
    size: int
    stamp: str


def fetch(named: str, project: Path, progress: Progress | None, may_be_own: bool = True) -> Fetched:
    """Download what is new or has changed. Raises AnnotatorError that names the address without its secrets."""
    scheme, address = check_address(named), redacted(named)
    files = _file_system(scheme, named, may_be_own)
    name = unquote(urlsplit(named).path.rstrip("/").rpartition("/")[2]) or urlsplit(named).hostname or "images"
    with landing(project, address, name, progress) as place:
        try:
            for number, remote in enumerate(_listed(files, named, scheme), start=1):
                _meet(remote, place)
                if number % 100 == 0:
                    place.show("Listing", number)
            place.manifest.commit()
            _check_any(place, address)
            _download_all(files, place, named)
            for part in place.folder.glob(".part-*"):
                part.unlink(missing_ok=True)
            return fetched(place)
        except AnnotatorError:
            raise
        except Exception as error:
            raise _failed(named, error) from None


def _file_system(scheme: str, named: str, may_be_own: bool) -> Any:
    """Raises AnnotatorError where its package is missing or the host is not allowed."""
    try:
        import fsspec

        module = __import__(SCHEMES[scheme])
    except ImportError as error:
        raise AnnotatorError(
            f"{scheme}:// needs the package {SCHEMES[scheme]}. Install it with: pip install "
            f"'multilabel-annotator[cloud]' {SCHEMES[scheme]}"
        ) from error
    parts = urlsplit(named)
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme in ("http", "https"):
        check_host(parts.hostname or "", may_be_own)
        may_be_own = may_be_own and web.is_own(parts.hostname or "")  # what is elsewhere stays elsewhere
        client = web.client(module, parts.hostname or "", may_be_own)
        return fsspec.filesystem(scheme, get_client=client, **options)
    if "@" in parts.netloc and not scheme.startswith(("az", "abfs")):
        raise AnnotatorError(
            f"{redacted(named)}: keys belong into the environment or your settings, not into addresses."
        )
    if scheme in ("s3", "s3a"):
        times = {"connect_timeout": web.CONNECT_SECONDS, "read_timeout": web.READ_SECONDS}
        times |= {"retries": {"max_attempts": TRIES}}
        return fsspec.filesystem("s3", anon=not _has_keys(), config_kwargs=times, **options)
    return fsspec.filesystem(scheme, **options)


def _has_keys() -> bool:
    """Whether there are keys for S3 on this machine; public buckets need none."""
    import botocore.session

    return botocore.session.get_session().get_credentials() is not None


def _listed(files: Any, named: str, scheme: str) -> Iterator[_Remote]:
    """Every file below the address, or the one that it names."""
    if scheme in ("http", "https"):
        return _pages(files, named)
    base = files._strip_protocol(named).rstrip("/")
    if scheme in ("s3", "s3a"):
        return _keys(files, base)
    return _walked(files, base)


def _keys(files: Any, base: str) -> Iterator[_Remote]:
    """S3: the keys, a thousand at a time."""
    bucket, _, prefix = base.partition("/")
    if prefix and is_file_name(prefix):
        yield _of_info(files.info(base), PurePosixPath(prefix).name)
        return
    prefix = f"{prefix}/" if prefix else ""
    token: dict[str, str] = {}
    while True:
        page = files.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=PAGE, **token)
        for row in page.get("Contents", ()):
            if not row["Key"].endswith("/"):
                facts = {"name": f"{bucket}/{row['Key']}", "size": row["Size"], "ETag": row.get("ETag")}
                yield _of_info(facts, row["Key"][len(prefix) :])
        if not page.get("IsTruncated"):
            return
        token = {"ContinuationToken": page["NextContinuationToken"]}


def _walked(files: Any, base: str) -> Iterator[_Remote]:
    """Folder by folder."""
    if is_file_name(base):
        yield _of_info(files.info(base), PurePosixPath(base).name)
        return
    waiting = [base]
    while waiting:
        for facts in files.ls(waiting.pop(), detail=True):
            path = facts["name"].rstrip("/")
            if not path.startswith(f"{base}/"):
                continue
            if facts.get("type") == "directory":
                if path.count("/") - base.count("/") <= DEEPEST:
                    waiting.append(path)
            else:
                yield _of_info(facts, path[len(base) + 1 :])


def _pages(files: Any, named: str) -> Iterator[_Remote]:
    """http: the links of index pages that lead deeper, and the head of each file."""
    base = urlsplit(named)._replace(query="", fragment="").geturl()
    if is_file_name(base):
        yield _of_info(files.info(named) | {"name": named}, unquote(PurePosixPath(urlsplit(base).path).name))
        return
    base = base.rstrip("/") + "/"
    waiting, seen = [base], {base}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        while waiting:
            page = waiting.pop()
            links = [link for link in files.ls(page, detail=False) if _leads_deeper(link, base)]
            for link in links:
                if link.endswith("/") and link not in seen and link.count("/") - base.count("/") <= DEEPEST:
                    seen.add(link)
                    waiting.append(link)
                if len(seen) > MOST_PAGES:
                    raise AnnotatorError(f"{redacted(base)} has more than {MOST_PAGES:,} pages of links.")
            found = sorted({link for link in links if is_wanted_here(unquote(link[len(base) :]))})
            for start in range(0, len(found), PAGE):
                some = found[start : start + PAGE]
                for link, facts in zip(some, pool.map(lambda link: _tried(files.info, link), some), strict=True):
                    yield _of_info(facts | {"name": link}, unquote(link[len(base) :]))


def _leads_deeper(link: str, base: str) -> bool:
    below = link[len(base) :]
    return (
        link.startswith(base) and bool(below) and not set(below) & set("?#") and ".." not in unquote(below).split("/")
    )


def _of_info(facts: dict[str, Any], name: str) -> _Remote:
    size = facts.get("size")
    version = next((facts[key] for key in ("ETag", "etag", "Content-MD5", "md5Hash") if facts.get(key)), "")
    changed = next(
        (facts[key] for key in ("LastModified", "Last-Modified", "last_modified", "updated") if facts.get(key)), ""
    )
    stamp = str(version or changed).strip('"') or (f"size:{size}" if size is not None else "")
    return _Remote(facts["name"], name, -1 if size is None else int(size), stamp)


def is_file_name(path: str) -> bool:
    """Whether a path ends as an image, an archive or a table does; else it is a folder."""
    return is_wanted_here(PurePosixPath(path).name)


def is_wanted_here(name: str) -> bool:
    """Whether a file is downloaded: images, labels, archives and tables."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    return is_wanted(name) or (name.lower().endswith(ARCHIVES) and not hidden)


def _meet(remote: _Remote, place: Landing) -> None:
    if not is_wanted_here(remote.name):
        place.passed_over += 1
        return
    key = place.key_of(remote.path.split("?")[0] if "://" in remote.path else remote.path)
    key = redacted(key) if "://" in key else key
    try:
        place.met(key, remote.name, remote.size, remote.stamp)
    except UnsafeNameError as error:
        place.problems.add(f"{remote.name!a}: {error}")


def _check_any(place: Landing, address: str) -> None:
    place.finish()
    count, size = place.manifest.counts()
    if not count:
        raise AnnotatorError(
            f"There is no image and no file of labels at {address} ({place.passed_over:,} others). Is the bucket and "
            "the path spelled right? A web server has to show an index page of the folder."
        )
    place.check_room(size if place.new == count else 0)


def _download_all(files: Any, place: Landing, named: str) -> None:
    """Download what waits, page by page. What has landed stays, whatever happens."""
    total = place.fetched
    done, after, stop = 0, "", threading.Event()
    pool = ThreadPoolExecutor(AT_A_TIME)
    try:
        while page := place.manifest.waiting(PAGE, after):
            after = page[-1].key
            futures = [pool.submit(_download, files, entry, place, named, stop) for entry in page]
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


def _download(files: Any, entry: Entry, place: Landing, named: str, stop: threading.Event) -> Path:
    """Download one file; returns where it lies until it is given its name."""
    digest = hashlib.sha256(f"{entry.key}\0{entry.stamp}".encode()).hexdigest()[:24]
    part = place.folder / f".part-{digest}"
    path = _address_of(entry.key, named)
    if entry.stamp in ("", f"size:{entry.bytes}"):  # what it was before can not be told
        part.unlink(missing_ok=True)

    def came(size: int) -> None:
        place.coming[part] = size
        place.check_room(place.bytes + sum(list(place.coming.values())))

    if named.startswith("http"):
        _tried(web.download, files, path, part, entry.bytes, partial(_is_version, entry), stop, came)
    else:
        _download_parts(files, entry, path, part, stop, came)
    return part


def _is_version(entry: Entry, headers: Any) -> bool:
    facts = {name: headers.get(name) for name in ("ETag", "Content-MD5", "Last-Modified")}
    return _of_info({"name": ""} | facts, "").stamp == entry.stamp


def _download_parts(
    files: Any, entry: Entry, path: str, part: Path, stop: threading.Event, came: Callable[[int], None]
) -> None:
    """From an object store, some bytes a request; what was put together is checked to be of one version."""
    with part.open("ab") as file:
        start = file.tell()
        if start > entry.bytes:
            file.truncate(start := 0)
        is_whole = start == 0 and entry.bytes <= CHUNK
        version = "" if is_whole else _of_info(_tried(files.info, path), "").stamp
        while start < entry.bytes:
            if stop.is_set():
                raise AnnotatorError("stopped")
            span = {} if is_whole else {"start": start, "end": min(start + CHUNK, entry.bytes)}
            content = _tried(files.cat_file, path, **span)
            if start + len(content) != span.get("end", entry.bytes):
                file.truncate(0)
                raise _changed(path)
            file.write(content)
            start += len(content)
            came(start)
        if not is_whole and _of_info(_tried(files.info, path), "").stamp != version:
            file.truncate(0)
            raise _changed(path)


def _changed(path: str) -> AnnotatorError:
    return AnnotatorError(f"{redacted(path)} has changed while it was read. Give the same command again.")


def _address_of(key: str, named: str) -> str:
    """The address of an entry, with what was hidden in its key."""
    if redacted(named).split("?")[0] == key:
        return named
    user = urlsplit(named).netloc.rpartition("@")[0] if "://" in named else ""
    return key.replace(f"//{HIDDEN}@", f"//{user}@", 1) if user else key


def _tried(call: Any, *values: Any, **options: Any) -> Any:
    """Call; again after a moment where the network failed."""
    for attempt in range(1, TRIES + 1):
        try:
            return call(*values, **options)
        except Exception as error:
            cause = _cause(error)
            status = getattr(cause, "status", 0)
            is_final = isinstance(cause, (FileNotFoundError, PermissionError, AnnotatorError))
            if attempt == TRIES or is_final or (400 <= status < 500 and status != 429):
                raise
            time.sleep(attempt * WAIT_SECONDS)
    raise AssertionError("not reached")


def _cause(error: BaseException) -> BaseException:
    """What was the matter at first with a web server: fsspec says of many things that a file is not found."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    for cause in reversed(chain):
        if isinstance(cause, (AnnotatorError, TimeoutError)) or type(cause).__module__.startswith("aiohttp"):
            return cause
    return error


def _failed(named: str, error: BaseException) -> AnnotatorError:
    """The error for a person: which address, what happened, what to do; never a secret."""
    error = _cause(error)
    if isinstance(error, AnnotatorError):
        return AnnotatorError(without_secrets(str(error), named))
    kind, text = type(error).__name__, " ".join(without_secrets(str(error), named).split()).rstrip(".")
    status = getattr(error, "status", 0)
    if isinstance(error, FileNotFoundError) or status == 404:
        advice = "There is nothing of this name. Is the bucket and the path spelled right?"
    elif isinstance(error, PermissionError) or status in (401, 403) or "Credentials" in kind:
        advice = "Access is refused. Are the keys in the environment those of this bucket, and may they list it?"
    elif isinstance(error, TimeoutError) or "Timeout" in kind:
        advice = f"There was no answer within {web.READ_SECONDS} seconds. Give the same command again to go on."
    else:
        advice = "Is the network there, and the address right? Give the same command again to go on."
    return AnnotatorError(f"{redacted(named)} cannot be read ({kind}{': ' if text else ''}{text}). {advice}")


URLS = Source(
    "urls", "an address: s3://, gs://, az://, https://; a folder of images, or an archive", is_address, fetch, "cloud"
)
