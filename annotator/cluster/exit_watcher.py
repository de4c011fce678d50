"""A message on standard error when Ray ends the command.

Ray exits in C++ without an exception when its raylet or head is gone, so a separate process writes it.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from annotator.process_stop import OWN_GROUP_FLAGS

_WATCHER_SCRIPT = """
import os, signal, sys, threading
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
command, text, closed = int(sys.argv[1]), sys.argv[2], threading.Event()
def wait_for_end():
    if os.read(0, 1):
        os._exit(0)
    closed.set()
threading.Thread(target=wait_for_end, daemon=True).start()
while os.getppid() == command and not closed.wait(0.1):
    pass
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
        creationflags=OWN_GROUP_FLAGS,
    )
    try:
        yield
    finally:
        assert watch.stdin is not None
        with contextlib.suppress(OSError):  # somebody has ended it
            watch.stdin.write(b".")
            watch.stdin.close()
        watch.wait()
