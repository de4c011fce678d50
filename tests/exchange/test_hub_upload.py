"""Uploading to the hub: against a stand-in on this machine, through the hub's own client."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.formats_view import view_of, write

from annotator.errors import AnnotatorError
from annotator.exchange.exports.hub_upload import push_to_hub
from annotator.exchange.formats import FORMATS

pytestmark = pytest.mark.process
TOKEN = "hf_of_the_stand_in"


@pytest.fixture
def stand_in(tmp_path):
    """The address of a stand-in, and where it keeps what it takes."""
    kept = tmp_path / "hub"
    kept.mkdir()
    command = [sys.executable, str(Path(__file__).resolve().parents[1].joinpath("harness", "hub_server.py")), str(kept)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", kept
        process.kill()


@pytest.fixture
def export(tmp_path):
    """A small export for the hub."""
    view = view_of(np.array([[1, 0], [-1, 2]]), files=["a.jpg", "b.jpg"], written="link")
    folder = write(FORMATS["huggingface"], view, tmp_path / "out")
    (folder / "data_card.md").write_text("# Card")
    return folder


def test_hub_upload_contains_the_exported_folder_and_is_private_by_default(stand_in, export, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    hub = pytest.importorskip("huggingface_hub")
    address, kept = stand_in
    for name, public in (("birds", False), ("team/fish", True)):
        commit = push_to_hub(export, name, hub.HfApi(endpoint=address, token=TOKEN), public)
        data_set = kept / ("someone/birds" if name == "birds" else name)
        assert commit == f"{address}/datasets/{data_set.relative_to(kept)}/commit/1"
        assert (data_set / ".visibility").read_text() == ("public" if public else "private")
        sent = {file.relative_to(export): file.read_bytes() for file in export.rglob("*") if file.is_file()}
        assert len(sent) == 5  # two images, their table, the card, the README
        assert {
            file.relative_to(data_set): file.read_bytes() for file in data_set.rglob("*[!y]") if file.is_file()
        } == sent


def test_failed_hub_upload_is_reported_and_keeps_the_folder(stand_in, export, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    hub = pytest.importorskip("huggingface_hub")
    address, kept = stand_in
    with pytest.raises(AnnotatorError, match=r"is written, but was not uploaded as 'birds'(?s:.*)401"):
        push_to_hub(export, "birds", hub.HfApi(endpoint=address, token="hf_wrong"))
    with pytest.raises(AnnotatorError, match=r"not uploaded as 'a/b/c'"):
        push_to_hub(export, "a/b/c", hub.HfApi(endpoint=address, token=TOKEN))
    with pytest.raises(AnnotatorError, match=r"has no README\.md"):
        push_to_hub(tmp_path, "birds", hub.HfApi(endpoint=address, token=TOKEN))
    with pytest.raises(AnnotatorError, match="not uploaded as 'birds'"):
        push_to_hub(export, "birds", hub.HfApi(endpoint="http://127.0.0.1:9", token=TOKEN))
    assert not any(kept.iterdir()) and (export / "README.md").is_file()
