"""Every command of docs/deploy.md and docs/team.md runs, in its order."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import draw

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.ui.access.access_keys import SERVED_TO_TEAM_SETTING
from annotator.ui.access.serving_modes import parse_access

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "deploy.md").read_text(encoding="utf-8")
TEAM = (DOCS / "team.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.process
def test_commands_of_the_deployment_page_run_in_order(annotator, tmp_path, photos, class_file):
    set_up_project(tmp_path / "birds", images_folder=photos, class_file=class_file)
    lines = _commands(PAGE)
    assert {shlex.split(line)[1] for line in lines} >= {"doctor", "backup", "restore"}
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "annotator", line
        annotator(*words)


def test_commands_of_the_team_page_run_in_order(annotator, tmp_path, monkeypatch):
    """But those that serve until they are stopped, and pip: of the former the options are read."""
    for number in range(6):
        draw(tmp_path / "photos" / "site-3" / f"{number}.jpg", (), seed=number)
    (tmp_path / "classes.txt").write_text("heron\nfox\n")
    set_up_project(tmp_path / "birds", images_folder=tmp_path / "photos", class_file=tmp_path / "classes.txt")
    complete = Decision("complete", "done", "Olga", "done", image_id=1)
    assert not decisions.save(Database(tmp_path / "birds"), [complete]).refused
    name = images.load_all_images(Database(tmp_path / "birds"))[0].name
    (tmp_path / "hard.txt").write_text(f"{name}\n")
    (tmp_path / "known.txt").write_text(f"{name}\n")
    (tmp_path / "provider.toml").write_text(re.search(r"```toml\n(.*?)```", TEAM, re.DOTALL).group(1))
    (tmp_path / "provider.toml").chmod(0o600)
    monkeypatch.chdir(tmp_path)
    Database(tmp_path / "birds").set_setting(SERVED_TO_TEAM_SETTING, True)
    served = []
    for line in _commands(TEAM):
        program, *words = shlex.split(line)
        if program == "pip":
            assert words == ["install", "multilabel-annotator[auth]"]
        elif words[0] == "serve":
            given = dict(zip(words[2::2], words[3::2], strict=True))
            options = {key.removeprefix("--"): value for key, value in given.items()}
            options = {"trusted_proxies" if key == "behind" else key: value for key, value in options.items()}
            mode, provider = options.pop("auth"), options.pop("oidc", None)
            served.append(parse_access(mode, 8501, provider=provider and Path(provider), **options).mode)
        else:
            annotator(*words)
    assert served == ["invitation", "oidc"]


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]
