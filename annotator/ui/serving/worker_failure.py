"""Words for a worker that ended or could not start: the reason, what to do, and the end of its log.

The first line is the reason alone, because the status line of a page has room for no more. The first paragraph also
says what to do (heartbeat.WorkerState).
"""

import signal

from annotator.store.disk.system_errors import translate_error

MIN_FREE_BYTES = 20_000_000  # bytes of the disk, below which a full disk is the likely cause
ABORT_SIGNAL, KILL_SIGNAL = 6, 9  # of POSIX
RESTART_ADVICE = "    The app starts it again by itself. If it stops again, report it with its log (Images page)."
MEMORY_ADVICE = "    The machine may be out of memory: close other programs. The app starts the worker again."
DISK_ADVICE = "Free some space on it. The app starts the worker again by itself."


def describe_start_failure(error: Exception) -> str:
    """Describe why the worker's process could not be started."""
    told = translate_error(error)
    reason, _, advice = str(told or f"{type(error).__name__}: {error}").partition("\n")
    return f"The worker could not be started: {reason}\n{advice or '    The app tries again by itself.'}"


def describe_end(status: int, log: str, free_bytes: int | None) -> str:
    """Describe why the worker ended.

    Args:
        status: Exit status, or minus the signal's number.
        log: The last lines of the worker's log.
        free_bytes: Free bytes of the project's disk, None if unknown.
    """
    # A killed process wrote nothing about it: its log ends with something else.
    last, advice = find_last_error(log) if status > 0 or status == -ABORT_SIGNAL else ("", "")
    reason = last if status > 0 and last else _describe_status(status) + (f", after {last}" if last else "")
    if free_bytes is not None and free_bytes < MIN_FREE_BYTES:
        advice = f"    The disk is full ({free_bytes / 1e6:.0f} MB free). {DISK_ADVICE}"
    elif status == -KILL_SIGNAL or "MemoryError" in last or "out of memory" in last:
        advice = MEMORY_ADVICE
    return f"{reason}\n{advice or RESTART_ADVICE}" + (f"\n\nThe last lines of its log:\n{log}" if log else "")


def find_last_error(log: str) -> tuple[str, str]:
    """Return the last exception or "Error: ..." of a log, and the indented advice after the latter, or "" each."""
    lines, aborted = log.splitlines(), ""
    for start in reversed(range(len(lines))):
        if lines[start].startswith("Error: "):
            advice = [line for line in lines[start + 1 :] if line.startswith("    ")]
            return lines[start].removeprefix("Error: "), "\n".join(advice)
        if lines[start].startswith("Traceback (most recent call last)"):
            return next((line for line in lines[start + 1 :] if line.strip() and not line[0].isspace()), ""), ""
        if lines[start].startswith("Fatal Python error: "):  # often the end of a process that an exception ended
            aborted = lines[start]
    return aborted, ""


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"The worker ended with status {status}"
    try:
        name = f" ({signal.Signals(-status).name})"
    except ValueError:
        name = ""
    return f"The worker was killed by signal {-status}{name}"
