"""The documents cannot lie: the README's commands and every --help are run."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import draw
from served import Served, free_port, until
from typer.main import get_command

from annotator.cli import app

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [  # not losses, methods, pages and formats: their tables name their modules
    *(
        "annotator/ui",
        "annotator/worker",
        "annotator/worker/embedding",
        "annotator/worker/adapting",
        "annotator/queues",
        "annotator/queues/autopilot",
    ),
    *("annotator/quality", "annotator/exchange", "annotator/snapshot", "annotator/store", "annotator/cli"),
    *("annotator/cluster", "annotator/benchmark"),
    *("annotator/benchmark/methods", "annotator/benchmark/effort", "annotator/benchmark/harness"),
    *("annotator/benchmark/variants", "annotator/benchmark/collections"),
    *("annotator/benchmark/finish", "annotator/benchmark/finish/tools"),
    *(
        "models/backbones",
        "models/backbones/sources",
        "models/linear",
        "models/ensemble",
        "models/finetune",
        "models/statistics",
    ),
    *("annotator/store/features", "models/query_strategies", "models/zero_shot"),
]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """Every line of every ```sh block of the README."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def words_of(command, path=()) -> list[tuple[str, ...]]:
    found = [path]
    for name, child in getattr(command, "commands", {}).items():
        found += words_of(child, (*path, name))
    return found


@pytest.mark.process
def test_every_help_text_can_be_printed_and_every_command_has_examples(annotator):
    everything = words_of(get_command(app))
    assert len(everything) > 14
    for words in everything:
        text = annotator(*words, "--help").stdout
        assert "Usage:" in text
        if words and words != ("bench",):
            assert "Examples:" in text, words
            assert f"annotator {' '.join(words)}" in text, words


@pytest.mark.process
def test_the_commands_of_the_readme_run_in_their_order(annotator, tmp_path, processes):
    ran = set()
    for number in range(8):
        draw(tmp_path / "photos" / f"heron_{number:03}.jpg", ("heron",) if number % 2 else ("fox",), seed=number)
    (tmp_path / "classes.txt").write_text("fox\nheron\n")
    for line in commands():
        words = shlex.split(line)
        if words[0] != "annotator" or words[1] == "bench":
            continue
        if words[1] == "serve":
            Served(tmp_path / words[2], processes).process.terminate()
            until(lambda: processes[-1].poll() is not None)
        else:
            annotator(*words[1:])
        ran.add(words[1])
    assert ran >= {"init", "serve", "decide", "worker", "suggest", "status", "methods", "train", "undo", "export"}
    assert (tmp_path / "labels.csv").exists() and (tmp_path / "labels.jsonl").exists()


@pytest.mark.process
def test_the_benchmarks_of_the_readme_exist_with_their_options(annotator):
    rows = re.findall(r"`annotator (bench [^`]+)`", README)
    assert len(rows) >= 4
    for row in rows:
        words = shlex.split(row)
        text = annotator(*words[:2], "--help").stdout
        assert all(word in text for word in words if word.startswith("--")), row


@pytest.mark.process
def test_the_other_lines_of_the_readme_are_what_make_does():
    others = [line for line in commands() if not line.startswith("annotator")]
    makefile = (ROOT / "Makefile").read_text()
    for line in others:
        words = shlex.split(line)
        if words[0] == "python3":
            assert "-m venv $(VENV)" in makefile
        elif words[0] == ".venv/bin/pip":
            wanted = words[-1]
            assert wanted in (".", ".[test]")
            assert f"--editable {wanted}\n" in makefile or f'--editable "{wanted}"' in makefile
        elif words[0] == ".venv/bin/python":
            assert words[1:] == ["-m", "pytest"] and "$(BIN)/python -m pytest" in makefile
        else:
            assert words == [".venv/bin/annotator", "demo"] and "$(BIN)/annotator demo" in makefile
    assert "test" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if make := shutil.which("make"):
        for target in ("demo", "test"):
            subprocess.run([make, "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.process
def test_the_demo_starts_and_goes_on_where_it_was(tmp_path, processes):
    """`annotator demo` twice: the second time there is nothing to set up."""
    for _ in range(2):
        port = free_port()
        log = (tmp_path / "demo.log").open("wb")
        words = ["demo", "demo-project", "--no-browser", "--port", str(port)]
        demo = subprocess.Popen([sys.executable, "-P", "-m", "annotator", *words], cwd=tmp_path, stdout=log, stderr=log)
        processes.append(demo)
        until(lambda port=port: f"http://127.0.0.1:{port}" in (tmp_path / "demo.log").read_text())
        demo.terminate()
        demo.wait(30)
    from annotator.snapshot.status import status
    from annotator.store.database.database import Database

    found = status(Database(tmp_path / "demo-project"))
    assert (found["images"], found["classes"], found["files_kept_out"]) == (160, 12, [])


DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "sample_data" / "README.md"])


def test_links_and_pictures_of_the_documents_exist():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert not broken


def test_every_file_that_the_documents_name_exists():
    """`queues/grid.py` means the one in annotator, `components/shared/keys.js` the one in annotator/ui."""
    examples = {"models/losses/capped.py", "models/methods/capped.py", "tests/test_capped.py"}  # docs/extending.md
    examples |= {"models/query_strategies/expected_mistakes.py", "tests/test_expected_mistakes.py"}  # CONTRIBUTING.md
    places = [ROOT, ROOT / "annotator", ROOT / "annotator" / "ui", ROOT / "models"]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in DOCUMENTS
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"(?<![\w/<:])\w[\w.]*(?:/[\w.]+)*/\w+\.(?:py|js|css)\b", page.read_text("utf-8"))
        if name not in examples and not any((place / name).exists() for place in places)
    ]
    assert not missing


@pytest.mark.parametrize("room", ROOMS)
def test_the_docstring_of_every_package_names_each_of_its_modules(room):
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    missing = [path.name for path in (ROOT / room).glob("[a-z]*.py") if path.name not in said]
    assert not missing, f"the docstring of {room}/__init__.py does not name {missing}"


def test_every_promise_of_the_security_page_names_a_test_that_exists():
    rows = re.findall(r"^\|.*\|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)[2:]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"tests/test_\w+\.py", row.rsplit("|", 2)[1])
        assert named and all((ROOT / name).exists() for name in named), row
