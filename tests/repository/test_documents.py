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
from benchmarks.__main__ import commands as measurements
from conftest import draw
from harness.served import Served, free_port, until
from typer.main import get_command
from typer.testing import CliRunner

from annotator.cli import app

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import figures

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(
    str(path.parent.relative_to(ROOT))
    for room in ("annotator", "models/spmll")
    for path in (ROOT / room).glob("**/__init__.py")
)
PLACES_OF_NAMED_FILES = (ROOT, *(ROOT / room for room in ("annotator", "annotator/ui", "models", "models/spmll")))
README = (ROOT / "README.md").read_text(encoding="utf-8")


PAGES_OF_COMMANDS = ("README.md", "docs/tutorial.md", "docs/command-line.md")  # run in this order, in one folder
WORDS_OF_README = 700


def commands(*pages: str) -> list[str]:
    """Return every line of every ```sh block of these pages."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages]
    blocks = [block for text in texts for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def words_of(command, path=()) -> list[tuple[str, ...]]:
    found = [path]
    for name, child in getattr(command, "commands", {}).items():
        found += words_of(child, (*path, name))
    return found


@pytest.mark.process
def test_every_help_text_prints_and_every_command_has_examples(annotator):
    everything = words_of(get_command(app))
    assert len(everything) > 14
    for words in everything:
        text = annotator(*words, "--help").stdout
        assert "Usage:" in text
        if words and words != ("bench",):
            assert "Examples:" in text, words
            assert f"annotator {' '.join(words)}" in text, words


@pytest.mark.slow
@pytest.mark.process
def test_commands_of_readme_tutorial_and_command_line_pages_run_in_order(annotator, tmp_path, processes):
    ran = set()
    for number in range(8):
        draw(tmp_path / "photos" / f"heron_{number:03}.jpg", ("heron",) if number % 2 else ("fox",), seed=number)
    (tmp_path / "classes.txt").write_text("fox\nheron\n")
    for line in commands(*PAGES_OF_COMMANDS):
        words = shlex.split(line)
        if words[0] != "annotator" or words[1] == "bench":
            continue
        if words[1] == "serve":
            Served(tmp_path / words[2], processes).process.terminate()
            until(lambda: processes[-1].poll() is not None)
        else:
            annotator(*words[1:])
        ran.add(words[1])
    assert ran >= {
        "init",
        "serve",
        "decide",
        "worker",
        "suggest",
        "status",
        "methods",
        "train",
        "undo",
        "export",
        "diff",
    }
    assert (tmp_path / "labels.csv").exists() and (tmp_path / "labels.jsonl").exists()


def test_readme_stays_within_its_word_limit():
    words = len(re.sub(r"<!-- figures -->.*<!-- end of figures -->", "", README, flags=re.DOTALL).split())
    assert words <= WORDS_OF_README


def test_readme_figures_equal_the_latest_measurements():
    assert figures.written(README, figures.kept()) == README
    assert len(figures.kept()["rows"]) == len(figures.ROWS)


@pytest.mark.process
def test_benchmarks_named_in_the_readme_exist_with_their_options(annotator):
    rows = re.findall(r"`((?:annotator|make) bench [^`]+)`", README)
    assert len(rows) == len(figures.ROWS)
    for row in rows:
        program, *words = figures.list_words(row)
        if program == "annotator":
            text = annotator(*words[:2], "--help").stdout
        else:
            text = CliRunner().invoke(measurements, [words[0], "--help"]).stdout
        assert all(word in text for word in words if word.startswith("--")), row


@pytest.mark.process
def test_other_readme_commands_match_the_makefile():
    others = [line for line in commands("README.md") if not line.startswith("annotator")]
    makefile = (ROOT / "Makefile").read_text()
    for line in others:
        words = shlex.split(line)
        if words[0] == "python3":
            assert "-m venv $(VENV)" in makefile
        elif words[0] == ".venv/bin/pip":
            wanted = words[-1]
            assert wanted == ".[train]" and f'--editable "{wanted}"\n' in makefile
        else:
            assert words == [".venv/bin/annotator", "demo"] and "$(BIN)/annotator demo" in makefile
    assert "test" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if make := shutil.which("make"):
        for target in ("demo", "test"):
            subprocess.run([make, "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.process
def test_demo_starts_and_reuses_its_project_on_the_second_start(tmp_path, processes):
    """`annotator demo` twice: the second time there is nothing to set up."""
    for _ in range(2):
        port = free_port()
        log = (tmp_path / "demo.log").open("wb")
        words = ["demo", "demo-project", "--no-browser", "--port", str(port)]
        demo = subprocess.Popen([sys.executable, "-P", "-m", "annotator", *words], cwd=tmp_path, stdout=log, stderr=log)
        processes.append(demo)
        until(lambda port=port: f"http://127.0.0.1:{port}" in (tmp_path / "demo.log").read_text())
        demo.terminate()
        demo.wait(120)
    from annotator.snapshot.project_status import collect_status
    from annotator.store.database.database import Database

    found = collect_status(Database(tmp_path / "demo-project"))
    assert (found["images"], found["classes"], found["files_kept_out"]) == (160, 12, [])


DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "sample_data" / "README.md"])


def test_links_and_images_of_the_documents_exist():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert not broken


def test_every_file_named_in_the_documents_exists():
    """`queues/grid_queue.py` means the one in annotator, `pages/shared/keys.js` the one in annotator/ui."""
    examples = {"models/spmll/losses/capped.py", "models/spmll/methods/published/capped.py", "tests/test_capped.py"}
    examples |= {"annotator/store/schema/step_099.py", "tests/test_lens.py"}  # docs/extending.md
    strategy = {"models/spmll/query_strategies/expected_mistakes.py", "tests/test_expected_mistakes.py"}
    examples |= strategy  # CONTRIBUTING.md
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in DOCUMENTS
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"(?<![\w/<:])\w[\w.]*(?:/[\w.]+)*/\w+\.(?:py|js|css)\b", page.read_text("utf-8"))
        if name not in examples and not any((place / name).exists() for place in PLACES_OF_NAMED_FILES)
    ]
    assert not missing


@pytest.mark.parametrize("room", ROOMS)
def test_package_docstrings_are_short_and_name_existing_files(room):
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    lines = [line for line in said.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 6, f"{room}/__init__.py says in {len(lines)} lines what it is for; five are enough"
    places = [*PLACES_OF_NAMED_FILES, ROOT / room]
    named = re.findall(r"(?<![\w/<])[\w/]+\.(?:py|js)\b", said)
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert not missing, f"the docstring of {room}/__init__.py names {missing}, which are not there"


def test_security_page_names_existing_tests_for_every_promise():
    rows = re.findall(r"^\|.*\|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)[2:]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"tests/\w+/test_\w+\.py", row.rsplit("|", 2)[1])
        assert named and all((ROOT / name).exists() for name in named), row


@pytest.mark.slow
@pytest.mark.process
def test_documentation_site_builds_without_warnings_and_loads_no_external_files(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "-f", ".mkdocs.yml", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "annotator.Project" in (tmp_path / "api.html").read_text(encoding="utf-8")
    pages = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+\.(?:js|css|woff2?|png|svg)', pages)
