"""What of docs/design.md neither the import contracts, the linter nor the types hold (`make lint` checks all three)."""

import re
from pathlib import Path

from annotator import settings
from annotator.queues.image_queue import WORK_MODES
from annotator.records import FILLED_BY_MODEL, SOURCES
from spmll.methods import DEFAULT_METHOD

ROOT = Path(__file__).resolve().parents[2]
LINES = 600  # of a file with one noun
MODULES = 22  # of one folder
REGISTRIES = (  # a new entry is a new file
    "annotator/cli",
    "annotator/exchange/formats",
    "annotator/store/schema",
    "annotator/ui/pages",
    "annotator/ui/routes",
    "models/spmll/backbones/sources",
    "models/spmll/losses",
    "models/spmll/methods/published",
)
IMPORTED_NAMES = re.compile(r"^\s*(?:from|import)\s+(.+)", re.MULTILINE)  # in programs that tests write, too


def test_default_method_of_the_models_package_equals_that_of_project_settings():
    assert DEFAULT_METHOD == settings.DEFAULT_METHOD


def test_allowed_sources_of_stored_decisions_exclude_filled_by_model():
    assert FILLED_BY_MODEL not in SOURCES and WORK_MODES == ("annotate", "review")


def test_every_module_has_a_docstring_and_stays_below_the_line_limit():
    modules = [path for room in ("annotator", "models/spmll") for path in sorted((ROOT / room).glob("**/*.py"))]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in modules}
    assert len(texts) > 200
    silent = [str(path) for path, text in texts.items() if text.strip() and not text.lstrip().startswith('"""')]
    assert not silent, f"open without a docstring: {', '.join(silent)}"
    lines = {str(path): text.count("\n") for path, text in texts.items()}
    long = [f"{path} has {count}" for path, count in lines.items() if count > LINES]
    assert not long, f"more than {LINES} lines, split by noun: {', '.join(long)}"


def test_every_package_stays_below_the_module_limit():
    packages = [path.parent for room in ("annotator", "models/spmll") for path in (ROOT / room).glob("**/__init__.py")]
    counts = {str(path.relative_to(ROOT)): len(list(path.glob("*.py"))) - 1 for path in packages}
    full = {room: count for room, count in counts.items() if count > MODULES and room not in REGISTRIES}
    assert not full, f"more than {MODULES} modules, sort them into rooms: {full}"
    assert counts["annotator/store"] <= 6


def test_no_module_imports_a_test_module():
    """What tests share is in tests/harness: with one folder on the path, a module of tests has one name."""
    modules = {path for folder in ("tests", "docs") for path in (ROOT / folder).glob("**/*.py")}
    names = {path.stem for path in modules if path.name.startswith("test_")}
    assert len(names) > 200
    imports = [
        f"{path.relative_to(ROOT)}: {statement.strip()}"
        for path in sorted(modules)
        for statement in IMPORTED_NAMES.findall(path.read_text(encoding="utf-8"))
        if names & set(re.findall(r"\w+", statement))
    ]
    assert not imports, "move what they import to tests/harness:\n" + "\n".join(imports)
