"""docs/extending.md, executed: its files are written into a copy of the project and its commands are run there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import draw

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# The file a block belongs to is the last one that the text before it names.
BLOCKS = re.findall(r"`([\w/]+\.py)`:\n\n```(python|diff)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def blocks(kind: str) -> list[tuple[str, str]]:
    return [(path, text) for path, this, text in BLOCKS if this == kind]


def commands() -> list[str]:
    found = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [line for block in found for line in block.splitlines()]


def add(path: Path, diff: str) -> None:
    """Puts each line that begins with + behind the line before it, which must be in the file exactly once."""
    lines, before = path.read_text(encoding="utf-8").splitlines(), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert lines.count(before) == 1, f"{path} has not one line {before!r}"
            lines.insert(lines.index(before) + 1, line[1:])
        before = line[1:]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """A copy of the project with the page's files, some photos with their truth, and a project called birds."""
    for name in ("models", "annotator", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, text in blocks("python"):
        assert not (tmp_path / path).exists(), f"{path} exists already: the page would overwrite it"
        (tmp_path / path).write_text(text, encoding="utf-8")
    for path, diff in blocks("diff"):
        add(tmp_path / path, diff)
    truth = ["image,labels"]
    for number in range(24):
        shows = ("fox", "heron") if number % 3 else ("fox" if number % 2 else "heron",)
        draw(tmp_path / "photos" / f"{number:02}.jpg", shows, seed=number)
        truth.append(f"{number:02}.jpg,{'|'.join(shows)}")
    (tmp_path / "truth.csv").write_text("\n".join(truth) + "\n")
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,heron,present\n01.jpg,fox,present\n")
    run(tmp_path, "python -P -m annotator init birds --images photos --labels labels.csv --backbone efficientnet_lite0")
    return tmp_path


def run(folder: Path, line: str) -> str:
    words = shlex.split(line)
    assert words[0] == "python", line
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.process
def test_the_page_on_extending_does_what_it_says(copy):
    assert [path for path, _ in blocks("python")] == [
        "models/losses/capped.py",
        "tests/test_capped.py",
        "models/methods/capped.py",
    ]
    assert len(blocks("diff")) == 2 and len(commands()) == 7
    said = {line: run(copy, line) for line in commands()}
    for line, text in said.items():
        if "pytest" in line:
            assert re.search(r"^\.+ +\[100%\]$", text, re.MULTILINE), f"{line}\n{text}"
    shown, trained, compared = list(said.values())[-3:]
    assert "What nobody marked is absent, unless the network is sure" in shown and "tuned among 0.5, 1, 2" in shown
    assert re.search(r"Run 1: capped, \d+ epochs", trained)
    assert re.search(r"^capped +1 ", compared, re.MULTILINE) and re.search(r"^an +1 ", compared, re.MULTILINE)
    ours = [path for path, *_ in BLOCKS]
    run(copy, f"python -m ruff check {' '.join(ours)}")
    run(copy, f"python -m ruff format --check {' '.join(ours)}")


def test_a_page_that_names_a_line_that_is_gone_is_found_out(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\ntwo\n")
    add(tmp_path / "a.py", " one\n+more\n")
    assert (tmp_path / "a.py").read_text() == "one\nmore\ntwo\ntwo\n"
    for gone in (" three\n+more\n", " two\n+more\n"):
        with pytest.raises(AssertionError, match="has not one line"):
            add(tmp_path / "a.py", gone)
