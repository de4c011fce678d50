"""What an index would get: the wheel and the sdist, installed outside of this folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from served import free_port, until

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> list[Path]:
    """The sdist of a copy of what is committed or new, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    words = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tree" / name).write_bytes((ROOT / name).read_bytes())
    words = [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(folder / "tree")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted((folder / "dist").iterdir())


def test_an_index_would_take_wheel_and_sdist(built):
    assert [path.name.rpartition(".")[2] for path in built] == ["whl", "gz"]
    words = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_runs_the_demo_outside_of_this_folder(built, tmp_path, processes):
    target = tmp_path / "installed"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(built[0])]
    subprocess.run(words, check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    where = "import annotator, models; print(annotator.__file__, models.__file__)"
    words = [sys.executable, "-P", "-c", where]
    found = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert all(path.startswith(str(target)) for path in found.split())
    port = free_port()
    words = [sys.executable, "-P", "-m", "annotator", "demo", "demo-project", "--no-browser", "--port", str(port)]
    with (tmp_path / "demo.log").open("wb") as log:
        demo = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    processes.append(demo)
    until(lambda: f"http://127.0.0.1:{port}" in (tmp_path / "demo.log").read_text())
    assert (tmp_path / "demo-project" / "project.db").exists()
