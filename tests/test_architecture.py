"""The picture in docs/design.md is held by machines."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from annotator import settings
from annotator.exchange.formats import EXPORTS
from annotator.queues.annotate import MODES
from annotator.records import SOURCES
from models.methods import DEFAULT_METHOD

ROOT = Path(__file__).resolve().parent.parent


def run(*words: str) -> None:
    program = shutil.which(words[0], path=str(Path(sys.executable).parent)) or words[0]
    done = subprocess.run([program, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports_point_down():
    run("lint-imports", "--no-cache")


def test_the_code_is_clean_and_formatted():
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")


def test_the_default_method_is_the_same_in_both_places():
    assert DEFAULT_METHOD == settings.DEFAULT_METHOD


def test_a_model_is_never_a_source_of_decisions():
    assert "model" not in SOURCES
    assert set(EXPORTS) == {"csv", "jsonl"} and MODES == ("annotate", "review")


@pytest.mark.parametrize("path", sorted(ROOT.glob("annotator/**/*.py")) + sorted(ROOT.glob("models/**/*.py")), ids=str)
def test_every_module_says_what_it_owns_and_stays_small(path):
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().startswith('"""') or not text.strip(), f"{path} opens without a docstring"
    assert text.count("\n") <= 430, f"{path} has {text.count(chr(10))} lines: split it by noun"
