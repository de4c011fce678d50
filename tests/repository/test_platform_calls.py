"""Calls that Windows or macOS lack stand in few modules, each of which says what happens there instead.

Which names a system has is read from the type stubs of the standard library that basedpyright brings.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

basedpyright = pytest.importorskip("basedpyright")
ROOT = Path(__file__).resolve().parents[2]
STUBS = Path(basedpyright.__file__).parent / "dist/typeshed-fallback/stdlib"
OTHER_SYSTEMS = ("win32", "darwin")
GUARDED_MODULES = {
    "annotator/memory_allocator.py": "limits of glibc's allocator; without it memory grows",
    "annotator/process_stop.py": "groups of processes; without them the child alone is killed",
    "annotator/store/disk/file_permissions.py": "owners of files; Windows has other rights",
    "annotator/store/disk/processes.py": "the boot and the process namespace of Linux, which no library names",
    "annotator/store/disk/system_calls.py": "file operations; each does without or returns False",
    "annotator/system_resources.py": "priority and memory; psutil where the system has no such call",
    "models/spmll/usable_cores.py": "cores of a container; elsewhere those of the machine",
}
# What is compared with the stubs, and what Windows does not have at all.
MODULES = ("asyncio", "errno", "mmap", "os", "select", "shutil", "signal", "socket", "subprocess", "threading", "time")
MISSING_MODULES = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
MISSING_OPTIONS = {"dir_fd", "dst_dir_fd", "pass_fds", "preexec_fn", "src_dir_fd"}
MISSING_PATHS = ("/dev/", "/proc/", "/sys/")
SUSPICIOUS_TEXTS = (
    *("CDLL", *MISSING_OPTIONS, *MISSING_PATHS),
    *(f"{how} {name}" for how in ("import", "from") for name in MISSING_MODULES),
    *(f"import {name} as " for name in MODULES),
)
MODULE_USE = re.compile(rf"\b({'|'.join(MODULES)})(?:\.(\w+)| import )")


def test_only_the_guarded_modules_use_calls_that_windows_or_macos_lack():
    found = {}
    for room in ("annotator", "models/spmll"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if _may_use_missing_names(text) and (uses := sorted(set(_find_uses(text)))):
                found[path.relative_to(ROOT).as_posix()] = uses
    outside = {path: uses for path, uses in found.items() if path not in GUARDED_MODULES}
    assert not outside, (
        f"Windows or macOS lack these; use psutil, or a function of {', '.join(GUARDED_MODULES)}: {outside}"
    )
    idle = GUARDED_MODULES.keys() - found.keys()
    assert not idle, f"These need no guard any more: {idle}"


def test_search_for_missing_calls_finds_each_kind():
    wrong = {
        "import os\nos.fork()": "os.fork",
        "from signal import SIGKILL": "signal.SIGKILL",
        "import os as system\nsystem.getuid()": "os.getuid",
        "import socket\nsocket.AF_UNIX": "socket.AF_UNIX",
        "import os\nos.posix_fallocate(1, 0, 1)": "os.posix_fallocate",
        "import fcntl": "fcntl",
        "from resource import getrusage": "resource",
        "import ctypes\nctypes.CDLL(None).mallopt(1, 2)": "CDLL(None)",
        "open('/proc/self/stat')": "/proc/self/stat",
        "import subprocess\nsubprocess.run([], preexec_fn=print)": "preexec_fn",
        "SCRIPT = '''\nimport os\nos.setsid()\n'''": "os.setsid",
    }
    assert {code: [*_find_uses(code)] for code in wrong} == {code: [use] for code, use in wrong.items()}
    assert all(_may_use_missing_names(code) for code in wrong)
    right = "import os, signal\nos.getpid(); os.cpu_count(); signal.SIGTERM; getattr(os, 'O_NONBLOCK', 0)"
    assert not [*_find_uses(right)]


def _may_use_missing_names(text: str) -> bool:
    """Return whether a text is worth parsing, which takes most of the time."""
    if any(words in text for words in SUSPICIOUS_TEXTS):
        return True
    return any(not name or name in _find_missing_names(module) for module, name in MODULE_USE.findall(text))


def _find_uses(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    imported = {
        alias.asname or alias.name: alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in MISSING_MODULES)
            case ast.ImportFrom(module=str(module), level=0):
                if module in MISSING_MODULES:
                    yield module
                yield from (f"{module}.{one.name}" for one in node.names if one.name in _find_missing_names(module))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported:
                if attribute in _find_missing_names(imported[name]):
                    yield f"{imported[name]}.{attribute}"
            case ast.Call(args=[ast.Constant(value=None), *_]) if ast.unparse(node.func).endswith("CDLL"):
                yield "CDLL(None)"
            case ast.keyword(arg=str(name)) if name in MISSING_OPTIONS:
                yield name
            case ast.Constant(value=str(value)) if value.startswith(MISSING_PATHS):
                yield value
            case ast.Constant(value=str(value)) if "\nimport " in value and value.startswith("\n"):
                yield from _find_uses(value)  # a script for another process


@cache
def _find_missing_names(module: str) -> set[str]:
    """Return the names of a module that Linux has and another system has not."""
    if module not in MODULES:
        return set()
    return _list_names(module, "linux") - set.intersection(*(_list_names(module, name) for name in OTHER_SYSTEMS))


@cache
def _list_names(module: str, platform: str) -> set[str]:
    places = (STUBS / f"{module}.pyi", STUBS / module / "__init__.pyi")
    stub = next(path for path in places if path.exists())
    return set(_walk_stub(ast.parse(stub.read_text(encoding="utf-8")).body, platform))


def _walk_stub(body: list[ast.stmt], platform: str) -> Iterator[str]:
    system = SimpleNamespace(platform=platform, version_info=sys.version_info)
    for node in body:
        match node:
            case ast.If(test=test):
                holds = eval(compile(ast.Expression(test), "stub", "eval"), {"sys": system})
                yield from _walk_stub(node.body if holds else node.orelse, platform)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname for alias in names if alias.asname)
