"""A host process for tools that are Python classes, with JSON lines on standard streams.

Run it with `python -m annotator.benchmark.finish.host FILE.py:CLASS`. What a tool prints goes to standard error.
"""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from annotator.benchmark.finish.protocol import Answer, Question, Task, Tool

TOOL_METHODS = ("start", "ask", "answer", "labels", "certifies")


def load_tool_class(spec: str) -> type:
    """Return the class named by FILE.py:CLASS or MODULE:CLASS.

    Raises ValueError if it cannot be loaded or lacks tool methods.
    """
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise ValueError(f"{spec!r} names no class: write FILE.py:CLASS or MODULE:CLASS.")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise ValueError(f"There is no file {place}.")
        description = importlib.util.spec_from_file_location("finish_tool", place)
        assert description is not None and description.loader is not None
        module = importlib.util.module_from_spec(description)
        sys.modules["finish_tool"] = module  # dataclasses look their module up
        description.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise ValueError(f"{place} cannot be imported: {error}. A file is named with its .py.") from error
    if not hasattr(module, name):
        raise ValueError(f"{place} has no {name!r}.")
    tool = getattr(module, name)
    if missing := [method for method in TOOL_METHODS if not callable(getattr(tool, method, None))]:
        raise ValueError(f"{spec} lacks {', '.join(missing)}: a tool has {', '.join(TOOL_METHODS)}.")
    return tool


def serve_tool(tool: Tool, requests: TextIO, answers: TextIO) -> None:
    """Call the tool for each request, and write its answers, one JSON object per line."""
    for line in requests:
        answers.write(json.dumps(_answer_request(tool, json.loads(line)), default=_to_plain_value) + "\n")
        answers.flush()


def _answer_request(tool: Tool, request: dict[str, Any]) -> dict[str, Any]:
    call = request.pop("call")
    if call == "start":
        request.pop("version")
        places = {"images": tuple(map(Path, request["images"])), "classes": tuple(request["classes"])}
        tool.start(Task(**{**request, **places, "work": Path(request["work"])}))
        return {"certifies_by": str(getattr(tool, "certifies_by", ""))}
    if call == "ask":
        question = tool.ask()
        if question is None:
            return {"question": None}
        return {"question": {name: getattr(question, name) for name in ("kind", "images", "classes", "preset")}}
    if call == "answer":
        asked = request["question"]
        question = Question(asked["kind"], *(tuple(asked[name]) for name in ("images", "classes", "preset")))
        tool.answer(question, Answer(tuple(request["present"]), request["seconds"]))
        return {}
    if call == "labels":
        return {"labels": [[int(image), int(class_)] for image, class_ in tool.labels()]}
    if call == "certifies":
        return {"certifies": bool(tool.certifies())}
    if close := getattr(tool, "close", None):
        close()
    return {}


def _to_plain_value(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is no plain value.")


def main(spec: str) -> None:
    """Serve the tool of this class on standard input and output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the tool prints must not come between the answers
    try:
        tool = load_tool_class(spec)()
    except ValueError as error:
        sys.exit(str(error))
    serve_tool(tool, sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1])
