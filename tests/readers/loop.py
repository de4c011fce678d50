"""A reader that stays: a line of JSON asks for a path, and one line of JSON answers with what the tool read there."""

import json
import os
import sys
import traceback
from collections.abc import Callable

Cells = dict[str, dict[str, str]]
"""Image -> class -> present, absent or unsure."""


def serve(read: Callable[[str, str], Cells]) -> None:
    """Answer until the input ends. What libraries print goes to standard error.

    read    takes the path, and where the tool shall write the same again ("": nowhere)
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = {"read": read(*json.loads(line))}
        except Exception:  # whatever a tool raises is what the test wants to show
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=out, flush=True)
