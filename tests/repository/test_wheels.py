"""What an index would get: the wheels and sdists of both packages, installed outside of this folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from harness.served import free_port, until
from harness.without_training import COMMANDS_AND_PAGES, REFUSED_COMMANDS

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
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


def run_program(name: str, *words: object, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run a program of this environment in a folder, without the code of this repository."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [Path(sys.executable).parent / name, *map(str, words)],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def find_python(version: str) -> str | None:
    """Return a Python of this version that runs on this machine, pyenv's own included."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *map(str, sorted(root.glob(f"versions/{version}.*/bin/python3")))]
    for path in filter(None, found):
        if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def test_uvx_runs_the_wheel_in_the_versions_of_the_constraints(built, tmp_path):
    annotator, spmll = (paths[0] for paths in built.values())
    words = ["--python", sys.executable, "--constraints", CONSTRAINTS, "--with", spmll, "--from", annotator]
    assert run_program("uvx", *words, "annotator", "--version", folder=tmp_path).stdout.strip() == PROJECT["version"]


def test_pipx_runs_the_wheel_in_the_versions_of_the_constraints(built, tmp_path):
    annotator, spmll = (paths[0] for paths in built.values())
    words = ["run", "--backend", "uv", "--python", sys.executable, f"--pip-args=--find-links {spmll.parent}"]
    variables = {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "UV_CONSTRAINT": str(CONSTRAINTS),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = run_program("pipx", *words, "--spec", annotator, "annotator", "--version", folder=tmp_path, **variables)
    assert done.stdout.strip() == PROJECT["version"]


@pytest.mark.parametrize("version", PYTHONS)
def test_wheels_without_training_run_commands_and_pages_on_every_named_python(
    built, version, photos, class_file, tmp_path
):
    if (python := find_python(version)) is None:
        pytest.skip(f"Python {version} is not on this machine")
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,fox,present\n01.jpg,heron,absent\n")
    wheels = [word for paths in built.values() for word in ("--with", paths[0])]
    words = ["run", "--no-project", "--isolated", "--python", python, "--with-requirements", "constraints.in", *wheels]
    (tmp_path / "constraints.in").write_text(f"-c {CONSTRAINTS}\n")
    code = f"REFUSED_COMMANDS = {REFUSED_COMMANDS}\n{COMMANDS_AND_PAGES}"
    said = run_program("uv", *words, "python", "-P", "-c", code, folder=tmp_path).stdout
    assert said.count("Error: Training is not installed") == len(REFUSED_COMMANDS)
    assert (tmp_path / "out.csv").read_text().splitlines()[4] == "03.jpg,,,1"


def test_bill_of_materials_lists_the_packages_of_an_environment_with_their_licenses(built, tmp_path):
    wheels = [paths[0] for paths in built.values()]
    run_program("uv", "venv", "--python", sys.executable, "environment", folder=tmp_path)
    options = ["--python", "environment/bin/python", "--constraints", CONSTRAINTS]
    run_program("uv", "pip", "install", *options, *wheels, folder=tmp_path)
    dry = ["make", "-n", "sbom", f"VENV={sys.prefix}"]
    printed = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    program, *words = printed.replace("\\\n", " ").strip().splitlines()[-1].split()
    bill_file = tmp_path / "bill.cdx.json"
    places = {
        "build/multilabel-annotator.cdx.json": bill_file,
        "build/sbom-environment": tmp_path / "environment",
    }
    assert set(places) <= set(words)
    run_program(Path(program).name, *(places.get(word, word) for word in words), folder=ROOT)
    bill = json.loads(bill_file.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == PROJECT["name"]
    components = {each["name"]: each for each in bill["components"]}
    assert {"spmll", "streamlit"} <= set(components) and not {"torch", "pytest"} & set(components)
    assert components["streamlit"]["version"] and components["streamlit"]["licenses"]
