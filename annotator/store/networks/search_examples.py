"""Similarity search examples: an uploaded image, an image region, or words.

The page writes requests and the worker answers, in files that survive crashes:

    examples/<id>.json           request
    examples/<id>.picture        uploaded image, until read
    examples/<id>.safetensors    answer: `vector` (D,), or `image_ids` (N,) and `values` (N,)
    examples/<id>.error          failure reason
"""

import json
import os
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from annotator.errors import AnnotatorError
from annotator.store.database import heartbeat
from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database
from annotator.store.networks import configuration

EXAMPLES_FOLDER = "examples"
MAX_AGE_SECONDS = 7 * 24 * 3600.0
PICTURE_MAX_AGE_SECONDS = 600.0  # how long a picture may wait for a worker
MAX_EXAMPLES = 500
MAX_WAITING_REQUESTS, MAX_WAITING_REQUESTS_PER_PERSON = 64, 4
MAX_TEXT_CHARACTERS = 200  # letters; networks read some 60 words at most
MIN_SIDE_SHARE = 0.01  # of a part, as a share of its image
PICTURE, PART, WORDS = "picture", "part", "words"
_REQUEST_SUFFIX, _PICTURE_SUFFIX, _ANSWER_SUFFIX, _ERROR_SUFFIX = ".json", ".picture", ".safetensors", ".error"


@dataclass(frozen=True)
class ExampleRequest:
    """A request for an example."""

    key: str
    # PICTURE, PART or WORDS
    kind: str
    # image name, or the words
    name: str
    image_id: int = 0
    # left, top, right, bottom as shares of the displayed image
    box: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    # unix seconds
    at: float = 0.0
    # person, by a key that no other person has. Empty for programs
    by: str = ""

    @property
    def description(self) -> str:
        return {PICTURE: self.name, PART: f"part of {self.name}", WORDS: f'"{self.name}"'}[self.kind]


@dataclass(frozen=True, eq=False)
class ExampleAnswer:
    """The backbone's output for an example."""

    network: str
    # (D,) float32 embedding, None for words
    vector: np.ndarray | None
    # for words: (N,) int64, ascending
    image_ids: np.ndarray | None = None
    # for words: (N,) float32 cosine similarities
    values: np.ndarray | None = None


def request_picture(db: Database, content: bytes, name: str, by: str = "") -> str:
    """Request a search with a validated uploaded image and return the request id."""
    return _write_request(db, ExampleRequest(secrets.token_hex(8), PICTURE, name, at=time.time(), by=by), content)


def request_part(db: Database, image_id: int, box: Sequence[float], by: str = "") -> str:
    """Request a search with an image region and return the request id. Raises AnnotatorError if invalid."""
    left, top, right, bottom = (min(max(float(side), 0.0), 1.0) for side in box)
    name = db.value("SELECT name FROM image WHERE id = ?", [image_id])
    if name is None:
        raise AnnotatorError(f"There is no image {image_id}. Was it removed, or is the page of another project?")
    if right - left < MIN_SIDE_SHARE or bottom - top < MIN_SIDE_SHARE:
        raise AnnotatorError("The part has hardly any area: draw a larger rectangle, from one corner to the other.")
    return _write_request(
        db, ExampleRequest(secrets.token_hex(8), PART, name, image_id, (left, top, right, bottom), time.time(), by)
    )


def request_words(db: Database, words: str, by: str = "") -> str:
    """Request a search with words and return the request id. Raises AnnotatorError if invalid."""
    cleaned = " ".join(words.split())
    if not cleaned or len(cleaned) > MAX_TEXT_CHARACTERS:
        raise AnnotatorError(f"{len(cleaned)} letters are no words to search for: type 1 to {MAX_TEXT_CHARACTERS}.")
    return _write_request(db, ExampleRequest(secrets.token_hex(8), WORDS, cleaned, at=time.time(), by=by))


def _write_request(db: Database, asked: ExampleRequest, content: bytes | None = None) -> str:
    db.check_writable()
    with db.caches.get("search requests", "", threading.Lock, 1):  # counting and writing, or parallel requests pass
        delete_old(db)
        _check_limits(db, asked.by)
        _store_request(db, asked, content)
    return asked.key


def _check_limits(db: Database, by: str) -> None:
    """Raise AnnotatorError if a person, or all together, have too many unanswered requests."""
    waiting = load_waiting(db)
    own = sum(asked.by == by for asked in waiting)
    if own >= MAX_WAITING_REQUESTS_PER_PERSON:
        raise AnnotatorError(
            f"{own} of your searches wait for the worker, and a person may have {MAX_WAITING_REQUESTS_PER_PERSON}. Try "
            f"again after one is answered. {explain_delay(db)}".strip()
        )
    if len(waiting) >= MAX_WAITING_REQUESTS:
        raise AnnotatorError(
            f"{len(waiting)} searches of several people wait for the worker, and {MAX_WAITING_REQUESTS} may. Try again "
            f"in a minute. {explain_delay(db)}".strip()
        )


def _store_request(db: Database, asked: ExampleRequest, content: bytes | None) -> None:
    folder = _get_folder(db)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if content is not None:
        path = folder / f"{asked.key}{_PICTURE_SUFFIX}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    facts = {"kind": asked.kind, "name": asked.name, "image": asked.image_id, "box": asked.box, "at": asked.at}
    facts["by"] = asked.by
    with replace_file_atomically(
        folder / f"{asked.key}{_REQUEST_SUFFIX}", sync=False
    ) as part:  # last: then it is complete
        part.write_text(json.dumps(facts), encoding="utf-8")


def load_waiting(db: Database) -> list[ExampleRequest]:
    """Return unanswered requests in the order of answering.

    Each person's newest comes first, oldest of these first, so that many requests of one person delay no other.
    """
    try:
        names = {entry.name for entry in os.scandir(_get_folder(db))}
    except OSError:
        return []
    keys = [name.removesuffix(_REQUEST_SUFFIX) for name in names if name.endswith(_REQUEST_SUFFIX)]
    open_ = [key for key in keys if f"{key}{_ANSWER_SUFFIX}" not in names and f"{key}{_ERROR_SUFFIX}" not in names]
    by_person: dict[str, list[ExampleRequest]] = defaultdict(list)
    for asked in sorted((asked for key in open_ if (asked := load_request(db, key))), key=lambda asked: -asked.at):
        by_person[asked.by].append(asked)
    ranked = [(rank, asked.at, asked.key, asked) for own in by_person.values() for rank, asked in enumerate(own)]
    return [asked for *_, asked in sorted(ranked, key=lambda row: row[:3])]


def load_request(db: Database, key: str) -> ExampleRequest | None:
    """Return the request for a search example with this id, or None."""
    try:
        facts: dict[str, Any] = json.loads((_get_folder(db) / f"{key}{_REQUEST_SUFFIX}").read_text(encoding="utf-8"))
        left, top, right, bottom = map(float, facts["box"])
        return ExampleRequest(
            key,
            str(facts["kind"]),
            str(facts["name"]),
            int(facts["image"]),
            (left, top, right, bottom),
            float(facts["at"]),
            str(facts.get("by", "")),  # requests of an earlier version have none
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_picture(db: Database, asked: ExampleRequest) -> bytes:
    """Return an uploaded image. Raises AnnotatorError if missing."""
    try:
        return (_get_folder(db) / f"{asked.key}{_PICTURE_SUFFIX}").read_bytes()
    except OSError as error:
        raise AnnotatorError(f"{asked.name} is not kept any longer. Give the picture again.") from error


def save_answer(db: Database, asked: ExampleRequest, found: ExampleAnswer) -> None:
    """Store the answer to a search request and delete the uploaded image. Raises DiskFull."""
    arrays = {"vector": found.vector, "image_ids": found.image_ids, "values": found.values}
    content = save({name: array for name, array in arrays.items() if array is not None}, {"network": found.network})
    with replace_file_atomically(_get_folder(db) / f"{asked.key}{_ANSWER_SUFFIX}", sync=False) as part:
        part.write_bytes(content)
    _delete_picture(db, asked.key)


def save_error(db: Database, asked: ExampleRequest, reason: str) -> None:
    """Store why a search request failed and delete the uploaded image. Raises DiskFull."""
    with replace_file_atomically(_get_folder(db) / f"{asked.key}{_ERROR_SUFFIX}", sync=False) as part:
        part.write_text(reason, encoding="utf-8")
    _delete_picture(db, asked.key)


def load_answer(db: Database, key: str) -> ExampleAnswer:
    """Return the answer to a request. Raises AnnotatorError if missing, failed or outdated."""
    asked = load_request(db, key)
    if asked is None:
        raise AnnotatorError(
            f"The example {key} is not here: examples are kept for {MAX_AGE_SECONDS / 86400:.0f} days. Give it again."
        )
    if reason := read_error(db, key):
        raise AnnotatorError(reason)
    try:
        file: Any = safe_open(_get_folder(db) / f"{key}{_ANSWER_SUFFIX}", framework="numpy")  # not typed
        with file as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            arrays: dict[str, np.ndarray] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise AnnotatorError(f"{asked.description} is still being looked at. {explain_delay(db)}".strip()) from None
    except (OSError, SafetensorError, ValueError) as error:
        raise AnnotatorError(f"What is stored of {asked.description} is damaged. Give it again.") from error
    network, current = metadata.get("network", ""), configuration.get_backbone(db)
    if network != current:
        raise AnnotatorError(
            f"{asked.description} was looked at by {network or 'another network'}, and the project uses {current} "
            "since. Give it again."
        )
    return ExampleAnswer(network, arrays.get("vector"), arrays.get("image_ids"), arrays.get("values"))


def is_answered(db: Database, key: str) -> bool:
    """Return whether the answer to a search request, or its failure, is stored."""
    return any((_get_folder(db) / f"{key}{ending}").exists() for ending in (_ANSWER_SUFFIX, _ERROR_SUFFIX))


def read_error(db: Database, key: str) -> str:
    """Return why a search request failed, or "" if it did not."""
    try:
        return (_get_folder(db) / f"{key}{_ERROR_SUFFIX}").read_text(encoding="utf-8")
    except OSError:
        return ""


def explain_delay(db: Database) -> str:
    """Return why the answer to a search request takes long, or ""."""
    worker = heartbeat.load_worker_state(db)
    if worker.condition is heartbeat.WorkerCondition.NOT_INSTALLED:
        return worker.advice
    if not worker.alive:
        return "No worker is running, and only it has the network. Start the app, or run: annotator worker"
    state = worker.state if worker.state not in ("", "idle") else ""
    return f"The worker is busy: {state}." if state else ""


def delete_old(db: Database, now: float | None = None) -> None:
    """Delete expired search examples, and uploaded images that were never read."""
    now = time.time() if now is None else now
    ages: dict[str, float] = {}
    with suppress(OSError):
        for entry in os.scandir(_get_folder(db)):
            with suppress(OSError):
                modified = entry.stat().st_mtime
                key, _, ending = entry.name.partition(".")
                ages[key] = max(ages.get(key, 0.0), modified)
                if f".{ending}" == _PICTURE_SUFFIX and now - modified > PICTURE_MAX_AGE_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)
    newest = sorted(ages, key=lambda key: -ages[key])
    for key in {*newest[MAX_EXAMPLES:], *(key for key in newest if now - ages[key] > MAX_AGE_SECONDS)}:
        for ending in (_REQUEST_SUFFIX, _PICTURE_SUFFIX, _ANSWER_SUFFIX, _ERROR_SUFFIX):
            (_get_folder(db) / f"{key}{ending}").unlink(missing_ok=True)


def _delete_picture(db: Database, key: str) -> None:
    (_get_folder(db) / f"{key}{_PICTURE_SUFFIX}").unlink(missing_ok=True)


def _get_folder(db: Database) -> Path:
    return db.paths.project / EXAMPLES_FOLDER
