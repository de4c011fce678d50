"""docs/extending.md and the exercise of CONTRIBUTING.md, executed on a copy of the project."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import draw

ROOT = Path(__file__).resolve().parents[2]


class Page:
    """The blocks of a page: files to write, lines to add, commands to run."""

    def __init__(self, name: str):
        self.text = (ROOT / name).read_text(encoding="utf-8")
        # The file a block belongs to is the last one that the text before it names.
        blocks = r"`([\w/]+\.py)`:\n\n```(python|diff)\n(.*?)^```(?:\n\n```diff-replace\n(.*?)^```)?"
        found: list[tuple[str, str, str, str]] = re.findall(blocks, self.text, re.DOTALL | re.MULTILINE)
        self.blocks = [(path, kind, text) for path, kind, text, _ in found]
        self.replaced = [(path, text) for path, _, _, text in found if text]

    def of(self, kind: str) -> list[tuple[str, str]]:
        return [(path, text) for path, block_kind, text in self.blocks if block_kind == kind]

    def commands(self) -> list[str]:
        shell = re.findall(r"^```sh\n(.*?)^```", self.text, re.DOTALL | re.MULTILINE)
        return [line for block in shell for line in block.splitlines()]

    def apply(self, folder: Path) -> None:
        """Write the page's files into a copy of the project, and add its lines."""
        for path, text in self.of("python"):
            assert not (folder / path).exists(), f"{path} exists already: the page would overwrite it"
            (folder / path).write_text(text, encoding="utf-8")
        for path, diff in self.of("diff"):
            add(folder / path, diff)
        for path, diff in self.replaced:
            replace(folder / path, diff)


PAGE = Page("docs/extending.md")
EXERCISE = Page("CONTRIBUTING.md")


def add(path: Path, diff: str) -> None:
    """Puts each line that begins with + behind the line before it, which must be in the file exactly once."""
    lines, before = path.read_text(encoding="utf-8").splitlines(), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert lines.count(before) == 1, f"{path} has not one line {before!r}"
            lines.insert(lines.index(before) + 1, line[1:])
        before = line[1:]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def replace(path: Path, diff: str) -> None:
    """Puts each line that begins with + in place of the line before it, which must be in the file exactly once."""
    text = path.read_text(encoding="utf-8")
    for old, new in re.findall(r"^-(.*)\n\+(.*)\n", diff, re.MULTILINE):
        assert text.splitlines().count(old) == 1, f"{path} has not one line {old!r}"
        text = text.replace(f"{old}\n", f"{new}\n")
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """A copy of the project."""
    for name in ("models", "annotator", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def extended(copy):
    """A copy with the files of docs/extending.md, some photos with their truth, and a project called birds."""
    PAGE.apply(copy)
    truth = ["image,labels"]
    for number in range(24):
        shows = ("fox", "heron") if number % 3 else ("fox" if number % 2 else "heron",)
        draw(copy / "photos" / f"{number:02}.jpg", shows, seed=number)
        truth.append(f"{number:02}.jpg,{'|'.join(shows)}")
    (copy / "truth.csv").write_text("\n".join(truth) + "\n")
    (copy / "labels.csv").write_text("image,class,state\n00.jpg,heron,present\n01.jpg,fox,present\n")
    run(copy, "python -P -m annotator init birds --images photos --labels labels.csv --backbone efficientnet_lite0")
    return copy


def run(folder: Path, line: str) -> str:
    words = shlex.split(line)
    assert words[0] == "python", line
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "models")])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.process
def test_commands_and_code_of_the_extending_page_work(extended):
    copy = extended
    assert [path for path, _ in PAGE.of("python")] == [
        "models/spmll/losses/capped.py",
        "tests/test_capped.py",
        "models/spmll/methods/published/capped.py",
        "annotator/store/schema/step_099.py",
        "tests/test_lens.py",
    ]
    assert len(PAGE.of("diff")) == 4 and len(PAGE.commands()) == 8
    said = {line: run(copy, line) for line in PAGE.commands()}
    for line, text in said.items():
        if "pytest" in line:
            assert re.search(r"^\.+ +\[100%\]$", text, re.MULTILINE), f"{line}\n{text}"
    shown, trained, compared = list(said.values())[-4:-1]
    assert "What nobody marked is absent, unless the network is sure" in shown and "tuned among 0.5, 1, 2" in shown
    assert re.search(r"Run 1: capped, \d+ epochs", trained)
    for method in ("capped", "an"):  # a row of the table of methods
        assert re.search(rf"^`?{method}`? +\d", compared, re.MULTILINE), compared
    check_style(copy, PAGE)


def check_style(copy: Path, page: Page) -> None:
    files = " ".join(path for path, *_ in page.blocks)
    run(copy, f"python -m ruff check {files}")
    run(copy, f"python -m ruff format --check {files}")


@pytest.mark.slow
@pytest.mark.process
def test_contributing_exercise_adds_a_query_strategy_with_three_files(copy):
    EXERCISE.apply(copy)
    assert len({path for path, *_ in EXERCISE.blocks}) == 3
    printed = [run(copy, line) for line in EXERCISE.commands()]
    assert len(printed) == 2
    for line, text in zip(EXERCISE.commands(), printed, strict=True):
        assert re.search(r"^\.+ +\[100%\]$", text, re.MULTILINE), f"{line}\n{text}"
    offered = "from annotator.queues import query_order; print(query_order.find_strategy('expected_mistakes').title)"
    assert run(copy, f'python -P -c "{offered}"').strip() == "Most expected mistakes"
    check_style(copy, EXERCISE)


def test_documentation_patch_with_a_missing_or_ambiguous_context_line_raises_an_error(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\ntwo\n")
    add(tmp_path / "a.py", " one\n+more\n")
    assert (tmp_path / "a.py").read_text() == "one\nmore\ntwo\ntwo\n"
    for gone in (" three\n+more\n", " two\n+more\n"):
        with pytest.raises(AssertionError, match="has not one line"):
            add(tmp_path / "a.py", gone)
