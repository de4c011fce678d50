"""Building of classifiers, in a separate process because it loads torch.

The process ends with the app, which holds its pipe open.
"""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.exports.archive import zip_folder
from annotator.exchange.files.safe_names import safe_name
from annotator.progress_callbacks import ignore_progress
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.disk.durable import make_folder
from annotator.ui.shared.work.downloads import OfferedFile, get_downloads

CLASSIFIER_COMMAND = (sys.executable, "-P", "-m", "annotator", "classifier")
MAX_ERROR_CHARACTERS = 2000  # characters


@dataclass(frozen=True)
class ClassifierResult:
    """The result of a build: a classifier offered as a zip file, or an error (`said`: sentences of its model card)."""

    name: str
    ended_at: float
    offered: OfferedFile | None = None
    said: tuple[str, ...] = ()
    error: str = ""


class ClassifierBuilder:
    """The thread that builds a project's classifier in a separate process."""

    def __init__(self, db: Database):
        self._db = db
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._is_cancelled = False
        self.made: ClassifierResult | None = None

    @property
    def is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, name: str, expected_error: float) -> None:
        """Start building a classifier.

        Args:
            name: File name without ending.
            expected_error: Allowed share of wrong answers.

        Raises:
            AnnotatorError: Another build is running, or the name is not valid.
        """
        self._db.require(Right.REVIEW)
        if not name or name != safe_name(name):
            raise AnnotatorError(
                f"{name!r} cannot be the name of a file on every system. Use letters, digits, - and _."
            )
        with self._lock:
            if self.is_at_work:
                raise AnnotatorError("Another classifier is being made. Wait until it is done, or cancel it.")
            self.made, self._is_cancelled = None, False
            self._thread = threading.Thread(
                target=self._run_build, args=[name, expected_error], name="classifier", daemon=True
            )
            self._thread.start()

    def cancel(self) -> None:
        self._is_cancelled = True
        if (process := self._process) is not None:
            process.kill()

    def wait(self) -> None:
        if self._thread:
            self._thread.join()

    def _run_build(self, name: str, expected_error: float) -> None:
        folder: Path | None = None
        made = ClassifierResult(name, 0.0)
        try:
            folder = get_downloads(self._db).create_folder()
            files = folder / "files"
            make_folder(files, 0o700)
            said = self._run_command(files / f"{name}.onnx", expected_error)
            zipped = folder / f"{name}.zip"
            zip_folder(files, zipped, ignore_progress)
            made = ClassifierResult(name, 0.0, get_downloads(self._db).offer(zipped, "application/zip"), said)
        except (AnnotatorError, OSError, ValueError) as error:
            made = ClassifierResult(name, 0.0, error="" if self._is_cancelled else str(error))
        if folder is not None and made.offered is None:
            get_downloads(self._db).remove(folder.name)
        with self._lock:
            is_new = made.offered is not None or made.error
            self.made = ClassifierResult(name, time.time(), made.offered, made.said, made.error) if is_new else None

    def _run_command(self, target: Path, expected_error: float) -> tuple[str, ...]:
        words = [
            *CLASSIFIER_COMMAND,
            str(self._db.paths.project),
            str(target),
            "--expected-error",
            str(expected_error),
            "--json",
        ]
        with subprocess.Popen(
            [*words, "--watched"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            self._process = process
            if self._is_cancelled:
                process.kill()
            # Not communicate(): it would close the pipe by which the process knows that the app lives.
            told: list[str] = []
            reader = threading.Thread(target=lambda: told.append(_read_stream(process.stderr)), daemon=True)
            reader.start()
            printed = _read_stream(process.stdout)
            code = process.wait()
            reader.join()
        self._process = None
        if code:
            words_of_error = "".join(told).strip()[-MAX_ERROR_CHARACTERS:].removeprefix("Error: ")
            raise AnnotatorError(words_of_error or f"The process that makes the classifier ended with {code}.")
        found = json.loads(printed.splitlines()[-1])
        return tuple(str(sentence) for sentence in (*found["about"], *found["quality"]))


def get_classifier_builder(db: Database) -> ClassifierBuilder:
    return db.caches.get("classifier making", "", lambda: ClassifierBuilder(db), 1)


def _read_stream(stream) -> str:
    return stream.read() if stream else ""
