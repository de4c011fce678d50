"""Images and a slow network for commands on a Ray cluster, and how often each image was embedded."""

from collections import Counter

import pytest
from conftest import draw

from annotator.store.database.database import Database

IMAGES = 240
# A network that only the machine of the project knows, and that takes a while: its weights have to travel.
SLOW = """
import torch
from torch import nn
from spmll.backbones.pretrained import Pretrained

def slow():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 20, 7), nn.ReLU(), nn.Conv2d(20, 20, 7), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return Pretrained(nn.Sequential(*layers), "", 128, (0.5,) * 3, (0.5,) * 3, "bilinear")
"""


@pytest.fixture(scope="module")
def cluster_photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster_photos")
    for number in range(IMAGES):
        draw(folder / f"{number:03}.jpg", seed=number)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "slow_network.py").write_text(SLOW)
    facts = folder / "slow_network-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-network\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[annotator.backbones]\nslow = slow_network:slow\n")
    return folder


def times_in_shards(db: Database) -> Counter[int]:
    """Image id -> how many shards hold it."""
    from safetensors.numpy import load_file

    shards = db.paths.features("slow").glob("*.safetensors")
    return Counter(int(image_id) for path in shards for image_id in load_file(path)["image_ids"])


def each_once(db: Database) -> dict[int, int]:
    return dict.fromkeys(range(1, IMAGES + 1), 1)
