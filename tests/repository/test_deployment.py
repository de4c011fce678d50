"""The files by which the app is deployed, as far as they can be false without Docker, and its log as JSON."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
import yaml
from get_caddy import get_caddy
from harness.served import free_port, until
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from annotator.exchange.project_setup import set_up_project
from annotator.ui.access.serving_modes import parse_access

TOP = Path(__file__).resolve().parents[2]


def test_dockerfile_copies_existing_files_and_installs_existing_extras():
    text = (TOP / "Dockerfile").read_text()
    copied = [
        source for line in re.findall(r"^COPY (?!--from)(.+)", text, re.MULTILINE) for source in line.split()[:-1]
    ]
    assert copied and all((TOP / source).exists() for source in copied)
    kept = {line.removeprefix("!") for line in (TOP / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == set(copied), "what the build may see is what it copies"
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    installed = set(re.search(r'"\.\[(.+?)\]"', text).group(1).split(","))
    assert "train" in installed and installed <= set(project["optional-dependencies"])
    assert f'image.version="{project["version"]}"' in text
    assert text.index("USER annotator") < text.index('CMD ["sh", "-c", "[ -e'), "it runs without rights"


@pytest.mark.slow
@pytest.mark.process
def test_container_command_creates_and_serves_a_project_that_passes_its_health_check(tmp_path, photos):
    text = (TOP / "Dockerfile").read_text()
    health, command = (json.loads(line) for line in re.findall(r"^ *CMD (\[.+\])$", text, re.MULTILINE))
    port = free_port()
    defaults = dict(re.findall(r"(\w+)=(\S+)", re.search(r"^ENV (.+)", text, re.MULTILINE).group(1)))
    environment = {key: value.strip('"') for key, value in defaults.items()} | {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(TOP),
        "HOME": str(tmp_path),
        "PROJECT": str(tmp_path / "project"),
        "PORT": str(port),
        "IMAGES": str(photos),
        "URL": f"http://127.0.0.1:{port}/annotator/",
        "BEHIND": "172.30.7.0/24",
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=output, stderr=output)
    try:
        until(lambda: process.poll() is not None or "Open this address" in log.read_text(), 120)
        assert process.poll() is None, log.read_text()
        assert f"Served to its members at http://127.0.0.1:{port}/annotator" in log.read_text()
        assert subprocess.run(health, env=environment, check=False).returncode == 0
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) is not None


def test_compose_file_trusts_only_the_network_of_its_proxy():
    told = yaml.safe_load((TOP / "compose.yaml").read_text())
    app = told["services"]["annotator"]
    network = told["networks"]["default"]["ipam"]["config"][0]["subnet"]
    assert app["environment"]["BEHIND"] == network
    assert parse_access("invitation", 8501, "0.0.0.0", "https://labels.example.org", network).is_https
    assert "ports" not in app, "it is reached through the proxy only"
    assert app["read_only"] and app["init"], "only volumes are written; a stop is heard while a project is made"
    written = dict(re.findall(r"(XDG_\w+_HOME)=(\S+)", (TOP / "Dockerfile").read_text()))
    assert {name: Path(at).parent.as_posix() for name, at in written.items()} == dict.fromkeys(
        ("XDG_CACHE_HOME", "XDG_DATA_HOME"), "/data"
    )
    for service in told["services"].values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in told["volumes"] or source == "./photos" or (TOP / source).exists()


@pytest.mark.process
def test_caddyfile_is_valid(tmp_path):
    command = [get_caddy(), "adapt", "--validate", "--config", str(TOP / "deploy" / "Caddyfile")]
    environment = {"SITE": "labels.example.org", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "annotator:8501" in done.stdout


@pytest.mark.process
def test_systemd_unit_starts_serve_with_valid_options(tmp_path):
    text = (TOP / "deploy" / "annotator.service").read_text()
    program, command, project, *words = shlex.split(re.search(r"^ExecStart=(.+)", text, re.MULTILINE).group(1))
    assert Path(program).name == "annotator" and command == "serve" and project.startswith("/srv/annotator/")
    assert "ReadWritePaths=/srv/annotator" in text
    words.remove("--no-browser")
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given.pop("--log") == "json"
    given["--trusted_proxies"] = given.pop("--behind")
    assert parse_access(
        given.pop("--auth"), 8501, **{key.removeprefix("--"): value for key, value in given.items()}
    ).is_team
    if verify := shutil.which("systemd-analyze"):
        unit = tmp_path / "annotator.service"
        unit.write_text(text.replace(program, sys.executable))
        done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, check=False)
        ours = [line for line in done.stderr.splitlines() if "annotator.service" in line and "Unknown" in line]
        assert ours == []


@pytest.mark.process
def test_json_log_writes_one_object_per_line_without_secrets(tmp_path, photos, class_file):
    set_up_project(tmp_path / "project", images_folder=photos, class_file=class_file)
    log, port = tmp_path / "log", free_port()
    options = ["serve", str(tmp_path / "project"), "--no-browser", "--port", str(port), "--log", "json"]
    with log.open("wb") as errors, (tmp_path / "out").open("wb") as output:
        process = subprocess.Popen([sys.executable, "-P", "-m", "annotator", *options], stdout=output, stderr=errors)
    try:
        until(lambda: "Ctrl+C" in (tmp_path / "out").read_text(), 60)
        link = re.search(r"http://\S+", (tmp_path / "out").read_text()).group()
        assert httpx.get(link, follow_redirects=True).status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line["logger"].startswith("uvicorn") for line in lines)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert link.split("key=")[1] not in log.read_text(), "no secret is in the log"


def test_constraints_pin_and_hash_every_package_that_the_wheels_need():
    pinned, unhashed, name = {}, set(), ""
    for line in (TOP / "deploy" / "constraints.txt").read_text().splitlines():
        if (start := re.match(r"([a-z0-9._-]+)==([^ ;]+)", line)) is not None:
            name = start.group(1)
            pinned.setdefault(name, []).append(start.group(2))
            unhashed.add(name)
        elif line.lstrip().startswith("--hash=sha256:"):
            unhashed.discard(name)
    assert len(pinned) > 200 and not unhashed
    tables = [tomllib.loads((TOP / folder / "pyproject.toml").read_text()) for folder in (".", "models")]
    lines = [
        line for table in tables for line in (*table["build-system"]["requires"], *table["project"]["dependencies"])
    ]
    for table in tables:
        lines += [line for extra in table["project"]["optional-dependencies"].values() for line in extra]
    wanted = [each for each in map(Requirement, lines) if each.name not in ("spmll", "multilabel-annotator")]
    unmet = [
        str(each)
        for each in wanted
        if not any(each.specifier.contains(version) for version in pinned.get(canonicalize_name(each.name), ()))
    ]
    assert not unmet, "run: make constraints"
