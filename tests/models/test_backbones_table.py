"""The table of networks: its facts, what is downloaded, licences that bind, speeds that are kept."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch
from harness.tiny_networks import save_timm
from typer.main import get_command

from annotator.cli import app
from annotator.errors import AnnotatorError
from annotator.settings import DEFAULT_BACKBONE, Paths
from annotator.snapshot.network_table import load_network_table
from annotator.store.networks import machine_settings
from annotator.worker.features.backbone import fetch_weights, load_project_network, measure_speed, prepare_backbone
from spmll.backbones import curated, families, hub, licenses
from spmll.backbones.curated import (
    ATTENTION_POOLING,
    AVERAGE_POOLING,
    CLASS_TOKEN_POOLING,
    CURATED_NETWORKS,
    find_curated,
    is_packaged,
)
from spmll.backbones.packaged import PACKAGED_BACKBONES
from spmll.backbones.published_weights import find_published_weights

DINOV3 = "convnext_tiny.dinov3_lvd1689m"
DOC = (Path(__file__).resolve().parents[2] / "docs" / "backbones.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def own_machine(tmp_path, monkeypatch):
    """Nothing is accepted, measured or downloaded yet, and there is no network."""
    from huggingface_hub import constants

    monkeypatch.setenv("ANNOTATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    return constants


@pytest.fixture
def weights_server(tmp_path, processes, own_machine, monkeypatch):
    """Serves a folder as the hub would; returns the folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    def serve(cut: int = 0) -> Path:
        script = Path(__file__).resolve().parents[1].joinpath("harness", "weights_server.py")
        server = subprocess.Popen([sys.executable, script, folder, str(cut)], stdout=subprocess.PIPE, text=True)
        processes.append(server)
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        monkeypatch.setattr(own_machine, "ENDPOINT", address)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(own_machine, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)
        return folder

    return serve


def network(name):
    return find_curated(name) or pytest.fail(f"{name} is not in the table")


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in CURATED_NETWORKS if not entry.reads_text])
def test_backbone_table_matches_timm(name):
    entry = network(name)
    config = timm.models.get_pretrained_cfg(PACKAGED_BACKBONES[name].architecture if is_packaged(name) else name)
    with torch.device("meta"):
        made = timm.create_model(config.architecture, num_classes=0)
    assert sum(parameter.numel() for parameter in made.parameters()) == entry.parameters
    family = families.find_family(config.architecture)
    ours = PACKAGED_BACKBONES[name].input_size if is_packaged(name) else 0
    assert entry.input_size == (ours or (family.used_size if family else config.input_size[1]))
    pooling = family.pooling if family else getattr(made, "global_pool", "avg") or "avg"
    assert entry.pooling == {"token": CLASS_TOKEN_POOLING, "map": ATTENTION_POOLING}.get(str(pooling), AVERAGE_POOLING)
    if not is_packaged(name):
        assert config.has_weights and entry.licence == config.license and entry.repository == config.hf_hub_id


@pytest.mark.parametrize("name", [entry.name for entry in CURATED_NETWORKS if entry.reads_text])
def test_backbone_table_matches_open_clip(name):
    open_clip = pytest.importorskip("open_clip")
    entry, (architecture, _, tag) = network(name), name.removeprefix("open_clip:").partition("/")
    assert open_clip.get_pretrained_cfg(architecture, tag)["hf_hub"] == f"{entry.repository}/"
    vision = open_clip.get_model_config(architecture)["vision_cfg"]
    assert vision["image_size"] == entry.input_size and entry.extra == "clip"
    of_timm = [other for other in CURATED_NETWORKS if other.name.startswith(vision["timm_model_name"] + ".")]
    assert {(other.parameters, other.pooling, other.licence) for other in of_timm} == {
        (entry.parameters, entry.pooling, entry.licence)
    }


def test_every_listed_backbone_has_a_known_license_with_the_license_name_of_timm():
    known = {timm.models.get_pretrained_cfg(name).license for name in timm.list_models(pretrained=True)}
    assert set(licenses.BINDING_LICENSES) <= known and not set(licenses.BINDING_LICENSES) & set(licenses.OPEN_LICENSES)
    assert all(licence.url.startswith("https://") for licence in licenses.BINDING_LICENSES.values())
    assert {entry.licence for entry in CURATED_NETWORKS} <= set(licenses.BINDING_LICENSES) | set(licenses.OPEN_LICENSES)
    assert find_published_weights("vit_small_patch16_dinov3").licence == "dinov3-license"  # its default weights
    assert find_published_weights("open_clip:MobileCLIP2-S2/dfndr2b").licence == "apple-amlr"


@pytest.mark.process
def test_backbone_table_loads_without_importing_torch(tmp_path):
    code = (
        "import sys; from annotator.snapshot.network_table import load_network_table; load_network_table(); "
        "print({'torch', 'timm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.process
def test_interrupted_weights_download_resumes_and_verifies_the_checksum(weights_server, own_machine, monkeypatch):
    monkeypatch.setattr(own_machine, "DOWNLOAD_CHUNK_SIZE", 65_536)  # what is kept of a download that ends
    folder = weights_server(cut=600_000)
    file = folder / "timm" / "tiny" / "model.safetensors"
    file.parent.mkdir(parents=True)
    file.write_bytes(os.urandom(1_500_000))
    seen = []
    for _ in range(2):  # huggingface_hub itself may already have gone on
        try:
            path = hub.fetch("timm/tiny", "model.safetensors", lambda done, of: seen.append((done, of)))
        except ValueError as error:
            assert "goes on where the download was cut off" in str(error)
    assert path.read_bytes() == file.read_bytes() and hub.find_cached("timm/tiny", "model.safetensors") == path
    assert seen[-1] == (1_500_000, 1_500_000)
    firsts = [int(line) for line in (folder / ".ranges").read_text().split()]
    assert firsts[0] == 0 and 0 < firsts[-1] <= 600_000
    path.resolve().write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the file that was published"):
        hub.check_sha256(path)
    assert hub.find_cached("timm/tiny", "model.safetensors") is None


@pytest.mark.process
def test_binding_license_must_be_accepted_before_the_download(weights_server, annotator, tmp_path):
    folder = weights_server()
    made = save_timm(folder / "made", "cnn")
    (folder / "timm" / DINOV3).mkdir(parents=True)
    (made / "model.safetensors").rename(folder / "timm" / DINOV3 / "model.safetensors")
    refused = annotator("backbones", "--fetch", DINOV3, code=1)
    assert "DINOv3 License (Meta)" in refused.stderr and "--accept-licence" in refused.stderr
    assert not (folder / ".ranges").exists() and machine_settings.load_accepted_licenses() == set()
    # Its weights are of another network here: what matters is that they were asked for, and that they do not fit.
    annotator("backbones", "--fetch", DINOV3, "--accept-licence", code=1)
    assert machine_settings.load_accepted_licenses() == {"dinov3-license"}
    assert hub.find_cached(f"timm/{DINOV3}", "model.safetensors") is not None
    path = hub.find_cached(f"timm/{DINOV3}", "model.safetensors")
    path.resolve().write_bytes(path.read_bytes()[:-1000])
    cut = annotator("backbones", "--fetch", DINOV3, code=1).stderr
    assert "not the file that was published" in cut and hub.find_cached(f"timm/{DINOV3}", "model.safetensors") is None
    kept = json.loads((tmp_path / "home" / "machine.json").read_text())["licences"]["dinov3-license"]
    assert kept["by"] and kept["at"] > 0


@pytest.mark.process
def test_license_of_an_unlisted_backbone_is_fetched_from_the_hugging_face_hub(weights_server, annotator):
    folder = weights_server()
    for repository, card in {
        "some/net": {"license": "other", "license_name": "some-licence"},
        "some/other": {"license": "other"},
        "some/open": {"license": "MIT"},
    }.items():
        (folder / repository).mkdir(parents=True)
        (folder / repository / "card.json").write_text(json.dumps(card))
    assert [hub.fetch_license(f"some/{name}") for name in ("net", "other", "open", "none")] == [
        "some-licence", "other (some/other)", "mit", "",
    ]  # fmt: skip
    for name in ("hf-hub:some/net@main", "open_clip:hf-hub:some/net"):
        refused = annotator("backbones", "--fetch", name, code=1).stderr
        assert "some-licence" in refused and "--accept-licence" in refused
    assert "cannot be had" in annotator("backbones", "--fetch", "hf-hub:some/open", code=1).stderr
    assert machine_settings.load_accepted_licenses() == set()


def test_binding_licenses_are_found_for_every_alias_of_a_backbone():
    assert {
        name: find_published_weights(name).licence
        for name in (
            f"hf-hub:timm/{DINOV3}", "hf-hub:facebook/dinov3-vits16-pretrain-lvd1689m", "hf-hub:apple/MobileCLIP2-S0",
            "open_clip:hf-hub:timm/MobileCLIP2-S0-OpenCLIP", "open_clip:ViT-B-32/metaclip_400m",
            "open_clip:nllb-clip-base/v1", "regnet_y_128gf", "hf-hub:nvidia/some",
        )
    } == {
        f"hf-hub:timm/{DINOV3}": "dinov3-license",
        "hf-hub:facebook/dinov3-vits16-pretrain-lvd1689m": "dinov3-license",
        "hf-hub:apple/MobileCLIP2-S0": "apple-amlr",
        "open_clip:hf-hub:timm/MobileCLIP2-S0-OpenCLIP": "apple-amlr",
        "open_clip:ViT-B-32/metaclip_400m": "cc-by-nc-4.0",
        "open_clip:nllb-clip-base/v1": "cc-by-nc-4.0",
        "regnet_y_128gf": "cc-by-nc-4.0",
        "hf-hub:nvidia/some": "nvidia-open-model-license",
    }  # fmt: skip
    assert find_published_weights(f"hf-hub:timm/{DINOV3}").file == "model.safetensors"
    assert find_published_weights("regnet_y_400mf").licence == find_published_weights("hf-hub:somebody/s").licence == ""


def test_missing_library_of_a_backbone_is_reported_before_the_download(annotator, project, monkeypatch):
    monkeypatch.setattr(curated, "find_spec", lambda name: None)
    name = "open_clip:ViT-B-16-SigLIP2/webli"
    for words in (("backbones", "--fetch", name), ("backbone", project, f"efficientnet_lite0+{name}")):
        refused = annotator(*words, code=1).stderr
        assert "needs open_clip, which is not installed" in refused and "multilabel-annotator[clip]" in refused
    row = next(row for row in load_network_table() if row.name == name)
    assert row.lacking and not next(row for row in load_network_table() if row.name == DINOV3).lacking
    assert "First: pip install" in annotator("backbones").stdout
    with pytest.raises(AnnotatorError, match="not installed"):
        fetch_weights(name, lambda done, of: None)  # as the worker does, for the page


def test_offline_or_unaccepted_backbone_leaves_the_project_unchanged(project, annotator):
    from annotator.store.database.database import Database
    from annotator.store.networks import configuration

    db = Database(project)
    with pytest.raises(AnnotatorError, match="licence that binds those who use them"):
        load_project_network(db, DINOV3)
    machine_settings.accept_license("dinov3-license")
    with pytest.raises(AnnotatorError, match=r"cannot be downloaded.*Is this machine offline"):
        prepare_backbone(DINOV3)
    annotator("init", project, "--backbone", "vit_tiny_patch16_22", code=1)
    assert configuration.get_backbone(db) == DEFAULT_BACKBONE


def test_measured_backbone_speed_is_stored_and_estimates_the_project_hours(annotator, project, tmp_path):
    name = f"local-dir:{save_timm(tmp_path / 'tiny', 'cnn')}"
    speed = measure_speed(name, seconds=0.05)
    assert speed.images_a_second > 1 and machine_settings.load_speeds() == {name: speed}
    machine_settings.save_speed("efficientnet_lite0", machine_settings.NetworkSpeed(0.5, "CPU", 1.0))
    rows = {row["name"]: row for row in json.loads(annotator("backbones", project, "--json").stdout)}
    lite0 = rows["efficientnet_lite0"]
    assert lite0["images_a_second"] == 0.5 and lite0["hours"] == pytest.approx(lite0["hours"]) and lite0["hours"] > 0
    assert rows[DEFAULT_BACKBONE]["is_used"] and rows[DEFAULT_BACKBONE]["hours"] is None
    assert f"{DEFAULT_BACKBONE} (in use)" in annotator("backbones", project).stdout
    (tmp_path / "home" / "machine.json").write_text("{damaged")
    assert machine_settings.load_speeds() == {} and load_network_table()


def test_combined_backbones_with_long_names_get_distinct_folders(tmp_path):
    paths = Paths(tmp_path)
    names = ["local-dir:/" + "a" * 150 + f"+local-dir:/{place}" + "b" * 150 for place in "xy"]
    folders = {paths.features(name) for name in names}
    assert len(folders) == 2
    for folder in folders:
        folder.mkdir(parents=True)
    assert paths.features("vit.a+vit.b").name == "vit.a_vit.b"


def test_backbone_remove_option_refuses_relative_paths_as_names(project, annotator):
    for name in (".", "..", "../..", "/"):
        assert "nothing of" in annotator("backbone", project, "--remove", name, code=1).stderr
        assert Paths(project).features(name).parent == Paths(project).features("")
    assert (project / "project.db").is_file()


def test_backbone_documentation_names_every_backbone_and_option():
    missing = [entry.name for entry in CURATED_NETWORKS if f"`{entry.name}`" not in DOC]
    command = get_command(app).commands["backbones"]
    options = [name for option in command.params for name in option.opts if name.startswith("--")]
    missing += [name for name in options if name not in DOC]
    assert not missing, missing
    assert not re.search(r"\bfastest\b", DOC)
