"""Run a module in a process that ends when its parent does: `python -m harness.child_runner
    MODULE ...`.

The parent holds the other end of standard input, which the system closes however the parent ends, kill -9 included.
No signal does that on every platform.
"""

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 5.0  # between asking this process to end and ending it


def _end_with_parent() -> None:
    while os.read(0, 4096):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
