"""What an index would get: the wheels and sdists of both packages, installed outside of this folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.served import free_port, until

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = {"multilabel_annotator": ".", "spmll": "models"}  # name in the file names: folder of its pyproject.toml

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, list[Path]]:
    """The sdists of a copy of all committed and new files, and the wheels that are built from them."""
    folder = tmp_path_factory.mktemp("built")
    words = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tree" / name).write_bytes((ROOT / name).read_bytes())
    found = {}
    for name, place in DISTRIBUTIONS.items():
        words = [sys.executable, "-m", "build", "--outdir", str(folder / name), str(folder / "tree" / place)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found[name] = sorted((folder / name).iterdir())
    return found


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """A folder with both wheels as pip installs them, without their dependencies."""
    target = tmp_path_factory.mktemp("installed")
    wheels = [str(paths[0]) for paths in built.values()]
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), *wheels]
    subprocess.run(words, check=True)
    return target


def run_outside(installed: Path, folder: Path, *words: str, path: str = "") -> str:
    """Return what Python prints when it runs in a folder with the installed wheels, and with `path` before them."""
    places = os.pathsep.join(filter(None, [path, str(installed)]))
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_twine_accepts_wheel_and_sdist(built, name):
    assert [path.name.rpartition(".")[2] for path in built[name]] == ["whl", "gz"]
    words = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built[name])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed_wheels_contain_only_the_packages_annotator_spmll_and_sample_data(installed):
    brought = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert brought - {"bin"} == {"annotator", "spmll", "sample_data"}


def test_models_folder_of_the_user_can_be_imported_with_the_wheels_installed(installed, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.py").write_text("WIDTH = 7\n")
    code = "import annotator, spmll.methods, models.net; print(annotator.__file__, spmll.__file__, models.net.WIDTH)"
    *ours, width = run_outside(installed, tmp_path, "-c", code, path=str(tmp_path)).split()
    assert all(path.startswith(str(installed)) for path in ours) and width == "7"


def test_installed_wheels_run_the_demo_outside_the_repository(installed, tmp_path, processes):
    port = free_port()
    words = [sys.executable, "-P", "-m", "annotator", "demo", "demo-project", "--no-browser", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    with (tmp_path / "demo.log").open("wb") as log:
        demo = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    processes.append(demo)
    until(lambda: f"http://127.0.0.1:{port}" in (tmp_path / "demo.log").read_text())
    assert (tmp_path / "demo-project" / "project.db").exists()
