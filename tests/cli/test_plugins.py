"""Plug-ins: tests/plugin is installed offline and used; what cannot be used is named and breaks nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from annotator import open
from annotator.exchange import formats
from spmll import plugins
from spmll.plugins import PluginWarning

PLUGIN = Path(__file__).resolve().parents[1] / "plugin"
BROKEN = {
    "csv": "annotator_example.tag_list:TAG_LIST",  # a name of ours
    "no-such-module": "no_such_module:FORMAT",
    "no-format": "annotator_example.tag_list:STATES",
    "../escape": "annotator_example.tag_list:TAG_LIST",
    "twice": "annotator_example.tag_list:TAG_LIST",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the plug-in as pip installs it."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(PLUGIN, folder / "source")  # pip leaves what it built beside the source
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *words, "--target", folder / "site", source], check=True)
    return folder / "site"


@pytest.fixture
def installed(site, tmp_path, monkeypatch):
    """A copy of it, on the path of this process and of those that a test starts."""
    shutil.copytree(site, tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *sys.path]))
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture(autouse=True)
def looked_at_anew():
    """Installed packages are looked at once a process, and here before and after each test."""
    for known in (plugins.find_plugins, formats._load_plugin_formats):
        known.cache_clear()
    yield
    for known in (plugins.find_plugins, formats._load_plugin_formats):
        known.cache_clear()


def declare(site: Path, package: str, named: dict[str, str]) -> None:
    """What pip leaves of an installed package: its metadata."""
    facts = site / f"{package}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in named.items()]
    (facts / "entry_points.txt").write_text("[annotator.formats]\n" + "".join(lines))


@pytest.mark.process
def test_installed_plugin_imports_exports_and_trains(installed, annotator, project):
    assert [row["name"] for row in json.loads(annotator("formats", "--json").stdout)][-1] == "tag-list"
    sources = {row["name"]: row["source"] for row in json.loads(annotator("backbones", "--json").stdout)}
    assert sources["random-colors"] == "plug-in: annotator-example 1.0"
    (project.parent / "some.tags").write_text("00.jpg\t+fox\t-deer\n01.jpg\t+heron\n")
    assert "Format: tag-list (its name ends in .tags)" in annotator("import", project, "some.tags", "--yes").stdout
    annotator("export", project, "out.tags", "--format", "tag-list")
    lines = (project.parent / "out.tags").read_text().splitlines()
    assert lines[:3] == ["00.jpg\t+fox\t-deer", "01.jpg\t+heron", "02.jpg"] and len(lines) == 24
    (project.parent / "bad.tags").write_text("00.jpg\tfox\n")
    assert "bad.tags, line 1: 'fox' must be" in annotator("import", project, "bad.tags", "--yes", code=1).stderr
    annotator("init", project, "--backbone", "random-colors")
    assert "24 images published" in annotator("worker", project, "--once").stdout
    assert (project / "features" / "random-colors").is_dir()


@pytest.mark.slow
@pytest.mark.process
def test_finish_benchmark_runs_a_labeling_tool_installed_as_a_plugin(installed, annotator_process):
    words = [
        "bench",
        "finish",
        "--sets",
        "few",
        "--count",
        "20",
        "--persons",
        "perfect",
        "--tools",
        "by-class",
        "--json",
    ]
    (row,) = json.loads(annotator_process(*words).stdout)["rows"]
    assert (row["tool"], row["ended"], row["final"]["recall"]) == ("by-class", "certified", 1)


@pytest.mark.process
def test_unusable_plugin_is_reported_and_left_out(installed, annotator_process):
    declare(installed, "broken", BROKEN)
    declare(installed, "other", {"twice": "elsewhere:FORMAT"})
    done = annotator_process("formats", "--json")
    names = [row["name"] for row in json.loads(done.stdout)]
    assert names == [*formats.FORMATS, "tag-list"]
    warned = done.stderr.splitlines()
    assert len(warned) == len(BROKEN) and all(line.startswith("Warning: annotator.formats: ") for line in warned)
    for name in BROKEN:
        assert sum(repr(name) in line and "broken 1.0" in line for line in warned) == 1, name


def test_plugin_that_fails_to_recognize_a_file_does_not_stop_the_import(tmp_path, monkeypatch, project):
    (tmp_path / "confused_plugin.py").write_text(
        "from annotator.exchange.formats.format import Format\nFORMAT = Format('mine', 'confused', recognize=lambda "
        "path: 1 / 0, read=lambda path, problems, options: None)\n"
    )
    declare(tmp_path, "confused", {"confused": "confused_plugin:FORMAT"})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,fox,present\n")
    with (
        open(project) as opened,
        pytest.warns(PluginWarning, match="'confused' cannot say whether .*labels.csv"),
    ):
        assert opened.import_(tmp_path / "labels.csv").imported.answers == 1


def test_plugin_that_fails_to_load_is_left_out_with_a_warning(tmp_path, monkeypatch):
    (tmp_path / "failing_plugin.py").write_text("raise RuntimeError('no licence')")
    declare(tmp_path, "failing", {"fails": "failing_plugin:FORMAT"})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(PluginWarning, match=r"'fails' of failing 1\.0 cannot be loaded and is left out: no licence"):
        assert list(formats.all_formats()) == list(formats.FORMATS)
