"""External labeling tools under test, each in its own process with one JSON request and answer per line.

A process that is late, ends or breaks the protocol ends only its own run.
"""

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from annotator.benchmark.finish.protocol import (
    MAX_COMPUTING_SECONDS,
    PROTOCOL_VERSION,
    Answer,
    Question,
    Task,
    WrongTool,
)
from annotator.process_stop import OWN_GROUP_FLAGS, kill_process_group
from spmll import plugins

PLUGIN_GROUP = "annotator.finish_tools"
MAX_LINE_LETTERS = 1 << 26  # letters of a line
MAX_QUEUED_LINES = 100  # lines that a process may write unasked before it has to wait
GRACE_SECONDS = 5.0  # between the end of the requests and killing the process


class ProcessTool:
    """A Tool that forwards all calls to a process, which is restarted for each set and person."""

    certifies_by = ""

    def __init__(self, command: Sequence[str], timeout_seconds: float = MAX_COMPUTING_SECONDS):
        self.command, self.timeout_seconds = list(command), timeout_seconds
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._lines: queue.Queue[str] = queue.Queue(MAX_QUEUED_LINES)

    def start(self, task: Task) -> None:
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                encoding="utf-8",
                start_new_session=True,  # Ctrl+C is for the benchmark, which then ends it
                creationflags=OWN_GROUP_FLAGS,
            )
        except OSError as error:
            raise WrongTool(f"{self.command[0]} cannot be started: {error.strerror or error}.") from error
        threading.Thread(target=self._read_lines, args=(self._process,), daemon=True).start()
        places = {"images": list(map(str, task.images)), "classes": list(task.classes), "work": str(task.work)}
        answer = self._request_answer("start", version=PROTOCOL_VERSION, **{**vars(task), **places})
        self.certifies_by = str(answer.get("certifies_by", ""))

    def ask(self) -> Question | None:
        asked = self._get_field(self._request_answer("ask"), "question", (dict, type(None)))
        if asked is None:
            return None
        images, classes = (self._get_field(asked, name, list) for name in ("images", "classes"))
        preset = asked.get("preset") or []
        if not isinstance(preset, list) or not all(isinstance(value, bool) for value in preset):
            raise WrongTool(f"Preset answers are true or false, not {str(preset)[:80]}.")
        return Question(str(asked.get("kind")), tuple(images), tuple(classes), tuple(preset))

    def answer(self, question: Question, answer: Answer) -> None:
        self._request_answer("answer", question=vars(question), present=answer.present, seconds=answer.seconds)

    def labels(self) -> Iterable[tuple[int, int]]:
        labels = self._get_field(self._request_answer("labels"), "labels", list)
        for label in labels:
            if not isinstance(label, list) or len(label) != 2 or not all(type(place) is int for place in label):
                raise WrongTool(f"A label is [image, class], two numbers, not {str(label)[:80]}.")
        return [(image, class_) for image, class_ in labels]

    def certifies(self) -> bool:
        return self._get_field(self._request_answer("certifies"), "certifies", bool)

    def close(self) -> None:
        """End the process with its children, by force if needed."""
        if (process := self._process) is None:
            return
        self._process = None
        self._send_request(process, {"call": "close"}, last=True)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        kill_process_group(process)
        process.wait()
        self._errors.close()

    def _request_answer(self, call: str, **fields: Any) -> dict[str, Any]:
        assert self._process is not None
        self._send_request(self._process, {"call": call, **fields})
        try:
            line = self._lines.get(timeout=self.timeout_seconds)
        except queue.Empty:
            kill_process_group(self._process)
            raise WrongTool(
                f"It gave no answer to {call!r} within {self.timeout_seconds:g} seconds, and was ended."
            ) from None
        if not line:
            raise self._build_end_error(call)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise WrongTool(f"Its answer to {call!r} is no JSON object on one line: {line.strip()[:120]!r}.")
        return answer

    def _send_request(self, process: subprocess.Popen[str], request: dict[str, Any], *, last: bool = False) -> None:
        """Write a request in a thread, because a process that does not read would block the benchmark."""
        assert process.stdin is not None
        requests = process.stdin

        def write() -> None:
            with suppress(OSError, ValueError):
                requests.write(json.dumps(request) + "\n")
                requests.flush()
            if last:
                with suppress(OSError):
                    requests.close()

        threading.Thread(target=write, daemon=True).start()

    def _get_field(self, answer: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
        if name not in answer or not isinstance(answer[name], kind):
            raise WrongTool(f"Its answer lacks {name!r}, or it is of another type: {json.dumps(answer)[:120]}.")
        return answer[name]

    def _build_end_error(self, call: str) -> WrongTool:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return WrongTool(
            f"It ended at {call!r} with status {self._process.poll()}: {said[-1] if said else 'it said nothing'}"
        )

    def _read_lines(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines, suppress(ValueError, OSError, queue.Full):
            while line := lines.readline(MAX_LINE_LETTERS):
                self._lines.put(line, timeout=self.timeout_seconds)
        with suppress(queue.Full):
            self._lines.put("", timeout=self.timeout_seconds)


def make_class_command(spec: str) -> list[str]:
    """Return the command that runs a tool's class, FILE.py:CLASS or MODULE:CLASS, in a host process."""
    return [sys.executable, "-P", "-m", "annotator.benchmark.finish.host", spec]


def find_installed_tools(taken_names: Sequence[str]) -> dict[str, list[str]]:
    """Return by name the host command of each tool that an installed package offers as a plug-in."""
    return {
        name: make_class_command(entry.value)
        for name, entry in plugins.find_plugins(PLUGIN_GROUP, tuple(taken_names)).items()
    }
