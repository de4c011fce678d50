"""Listing of remote files page by page."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError, StorageTimeout
from annotator.store.locations.addresses import Address, redact_address
from annotator.store.locations.file_systems import call_with_retry

HEAD_THREADS = 8  # heads of a web server
PAGE_ENTRIES = 1000  # entries that are in memory
MAX_FOLDER_DEPTH = 30  # folders
MAX_LINK_PAGES = 100_000  # of links, of a web server


class RemoteFile(NamedTuple):
    """One remote file."""

    # path for fsspec
    path: str
    # path below the URL
    name: str
    # bytes, -1 if unknown
    size: int
    # changes with the content, "" if unknown
    stamp: str
    # 0 if unknown
    modified_ns: int = 0
    # whether a separate request returns the SHA-256
    has_sha256: bool = False
    # "" if not listed
    sha256: str = ""


def list_remote_files(
    files: Any, address: Address, is_file: Callable[[str], bool], after: str = ""
) -> Iterator[RemoteFile]:
    """Yield every file below a URL, or the file it names.

    Args:
        is_file: Whether a path names a wanted file, else a folder.
        after: Start after this name in byte order (S3 only).
    """
    if address.is_web:
        return _crawl_pages(files, address.plain, is_file)
    base = files._strip_protocol(address.plain).rstrip("/")
    if "/" in base and is_file(base):
        return iter([to_remote_file(files.info(base), PurePosixPath(base).name)])
    return _list_s3_keys(files, base, after) if is_sorted(address) else _walk_folders(files, base)


def is_sorted(address: Address) -> bool:
    """Return whether files are listed by name, so that listing can resume."""
    return address.is_s3


def _list_s3_keys(files: Any, base: str, after: str) -> Iterator[RemoteFile]:
    bucket, _, prefix = base.partition("/")
    prefix = f"{prefix}/" if prefix else ""
    start = {"StartAfter": prefix + after} if after else {}
    last = after
    while True:
        page = call_with_retry(
            files.call_s3, "list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=PAGE_ENTRIES, **start
        )
        rows = [row for row in page.get("Contents", ()) if row["Key"].startswith(prefix)]
        for row in rows:
            if not row["Key"].endswith("/"):
                facts = {"name": f"{bucket}/{row['Key']}", "size": row.get("Size"), "ETag": row.get("ETag")}
                facts |= {"LastModified": row.get("LastModified")}
                found = to_remote_file(facts, row["Key"][len(prefix) :])
                yield found._replace(has_sha256="SHA256" in row.get("ChecksumAlgorithm", ()))
        token = page.get("NextContinuationToken")
        if not page.get("IsTruncated"):
            return
        # A server that does not go on by name would be listed without end.
        if not token or token == start.get("ContinuationToken") or (rows and rows[-1]["Key"][len(prefix) :] == last):
            raise StorageTimeout(f"s3://{base} ends its listing after {last or 'nothing'} and says that there is more.")
        last = rows[-1]["Key"][len(prefix) :] if rows else last
        start = {"ContinuationToken": token}


def _walk_folders(files: Any, base: str) -> Iterator[RemoteFile]:
    """Yield files, with one folder in memory at a time."""
    files.invalidate_cache()  # some libraries keep what they have listed whatever they are told
    waiting = [base]
    while waiting:
        for facts in call_with_retry(files.ls, waiting.pop(), detail=True):
            path = facts["name"].rstrip("/")
            if not path.startswith(f"{base}/"):
                continue
            if facts.get("type") == "directory":
                if path.count("/") - base.count("/") <= MAX_FOLDER_DEPTH:
                    waiting.append(path)
            else:
                yield to_remote_file(facts, path[len(base) + 1 :])


def _crawl_pages(files: Any, named: str, is_file: Callable[[str], bool]) -> Iterator[RemoteFile]:
    """Yield the files that index pages link to, following deeper links only."""
    base = urlsplit(named)._replace(query="", fragment="").geturl()
    if is_file(base):
        yield to_remote_file(files.info(named) | {"name": named}, unquote(PurePosixPath(urlsplit(base).path).name))
        return
    base = base.rstrip("/") + "/"
    waiting, seen = [base], {base}
    with ThreadPoolExecutor(HEAD_THREADS) as pool:
        while waiting:
            page = waiting.pop()
            links = [link for link in files.ls(page, detail=False) if _leads_deeper(link, base)]
            for link in links:
                if link.endswith("/") and link not in seen and link.count("/") - base.count("/") <= MAX_FOLDER_DEPTH:
                    seen.add(link)
                    waiting.append(link)
                if len(seen) > MAX_LINK_PAGES:
                    raise AnnotatorError(f"{redact_address(base)} has more than {MAX_LINK_PAGES:,} pages of links.")
            found = sorted({link for link in links if is_file(unquote(link[len(base) :]))})
            for start in range(0, len(found), PAGE_ENTRIES):
                some = found[start : start + PAGE_ENTRIES]
                for link, facts in zip(some, pool.map(partial(call_with_retry, files.info), some), strict=True):
                    yield to_remote_file(facts | {"name": link}, unquote(link[len(base) :]))


def _leads_deeper(link: str, base: str) -> bool:
    below = link[len(base) :]
    return (
        link.startswith(base) and bool(below) and not set(below) & set("?#") and ".." not in unquote(below).split("/")
    )


def to_remote_file(facts: dict[str, Any], name: str) -> RemoteFile:
    """Build a file from file system metadata."""
    size = facts.get("size")
    versions = ("ETag", "etag", "Content-MD5", "md5Hash", "blob_id", "xet_hash")
    version = next((facts[key] for key in versions if facts.get(key)), "")
    changed = next(
        (facts[key] for key in ("LastModified", "Last-Modified", "last_modified", "updated") if facts.get(key)), ""
    )
    stamp = str(version or changed).strip('"') or (f"size:{size}" if size is not None else "")
    modified = int(changed.astimezone(UTC).timestamp() * 1e9) if isinstance(changed, datetime) else 0
    sha256 = str(getattr(facts.get("lfs"), "sha256", ""))  # Hugging Face: of all but small files
    sha256 = sha256 if re.fullmatch("[0-9a-f]{64}", sha256) else ""
    return RemoteFile(facts["name"], name, -1 if size is None else int(size), stamp, modified, sha256=sha256)
