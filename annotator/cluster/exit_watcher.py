"""A message on standard error when Ray ends the command.

Ray's library exits in C++ without an exception when its raylet or head is gone, so a separate process
writes the message.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

_WATCHER_SCRIPT = """
import os, select, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
command, text = int(sys.argv[1]), sys.argv[2]
while os.getppid() == command:
    if select.select([0], [], [], 0.1)[0] and os.read(0, 1):
        sys.exit()
try:
    sys.stderr.write(text)
except OSError:
    pass
"""


@contextlib.contextmanager
def report_sudden_exit(text: str) -> Iterator[None]:
    """Write `text` to standard error if the process dies within the block."""
    # It inherits no pipe of other processes; without -S and -I the folder or the environment could bring code in.
    watch = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCHER_SCRIPT, str(os.getpid()), text],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is for the command
    )
    try:
        yield
    finally:
        assert watch.stdin is not None
        with contextlib.suppress(OSError):  # somebody has ended it
            watch.stdin.write(b".")
            watch.stdin.close()
        watch.wait()
