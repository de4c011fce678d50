"""docs/losses.md, executed; and losses used alone, under autocast, exported and compiled."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from spmll.losses import LOSSES, make_loss
from spmll.losses.opml import rank_penalty
from spmll.methods.published.lagc_losses import contrastive_loss

ROOT = Path(__file__).resolve().parents[2]
BLOCKS, README_BLOCKS = (
    re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for page in ("docs/losses.md", "models/README.md")
)


@pytest.fixture
def problem():
    """Thirty-two images of four classes, each marked with one of its classes; what the page leaves to its reader."""
    chance = torch.Generator().manual_seed(0)
    truth = torch.rand(32, 4, generator=chance) < 0.4
    truth[:, 0] |= ~truth.any(1)
    images = truth.float() @ torch.randn(4, 8, generator=chance)
    labels = torch.zeros(32, 4, dtype=torch.int8)
    labels[torch.arange(32), truth.float().multinomial(1, generator=chance)[:, 0]] = 1
    torch.manual_seed(0)
    rows = torch.arange(32)
    loader = [(images[part], part) for part in rows.split(8)] * 20
    return {"network": nn.Linear(8, 4), "labels": labels, "loader": loader}, truth, images


def test_ten_line_example_of_the_losses_page_trains_gr(problem):
    names, truth, images = problem
    code = next(block for block in BLOCKS if "make_method" in block and "lightning" not in block)
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 10
    exec(code, names)
    hidden = truth & (names["labels"] == 0)
    p = torch.sigmoid(names["network"](images)).detach()
    assert (p[hidden][:, None] > p[~truth]).float().mean() > 0.75
    curves = names["method"].loss_function
    # In epoch 8 of 8 the curves of the code are at 7/8 of their way (k) and at its end (v).
    assert (curves.w, curves.b, curves.mu, curves.sigma) == (7 / 8 * 2, -2.0, pytest.approx(0.8), pytest.approx(0.5))


def test_code_blocks_of_the_losses_page_run_or_compile_without_lightning(problem):
    names, _, _ = problem
    for block in BLOCKS:
        if "import lightning" not in block or importlib.util.find_spec("lightning"):
            exec(block, names | {"torch": torch})
        else:
            compile(block, "docs/losses.md", "exec")


def test_code_block_of_the_spmll_readme_runs():
    names = {}
    (block,) = README_BLOCKS
    exec(block, names)
    assert names["logits"].grad.abs().sum() > 0


@pytest.mark.process
def test_losses_import_neither_annotator_nor_timm_torchvision_or_streamlit():
    code = (
        "import sys, torch; from spmll.losses import GeneralizedRobust;"
        "labels = torch.tensor([[1, 0, -1]]);"
        "assert GeneralizedRobust()(torch.zeros(1, 3), labels) > 0;"
        "loaded = {name.split('.')[0] for name in sys.modules};"
        "print(sorted(loaded & {'annotator', 'timm', 'torchvision', 'streamlit'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def batch(dtype=torch.float32):
    chance = torch.Generator().manual_seed(1)
    logits = (4 * torch.randn(6, 5, generator=chance)).to(dtype)
    labels = torch.randint(-1, 2, (6, 5), generator=chance, dtype=torch.int8)
    return logits, labels


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_unchanged_under_autocast(name):
    logits, labels = batch(torch.bfloat16)
    expected = make_loss(name)(logits, labels)
    with torch.autocast("cpu", torch.bfloat16):
        found = make_loss(name)(logits, labels)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


def test_rank_penalty_and_contrastive_loss_are_unchanged_under_autocast():
    chance = torch.Generator().manual_seed(2)
    probabilities, pairs = torch.rand(4, 6, generator=chance), torch.randn(4, 2, 3, generator=chance)
    kinds = torch.tensor([1, 2, 1, 0])
    expected = rank_penalty(probabilities), contrastive_loss(nn.functional.normalize(pairs, dim=-1), kinds)
    with torch.autocast("cpu", torch.bfloat16):
        found = rank_penalty(probabilities), contrastive_loss(nn.functional.normalize(pairs, dim=-1), kinds)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_exports_and_compiles_as_one_graph_for_any_batch_size(name):
    logits, labels = batch()
    images = torch.export.Dim("images", min=2)
    exported = torch.export.export(make_loss(name), (logits, labels), dynamic_shapes=[{0: images}, {0: images}])
    torch.compiler.reset()  # it remembers how often `forward` was compiled for other losses
    compiled = torch.compile(make_loss(name), fullgraph=True, dynamic=True, backend="eager")
    for rows in (6, 3):
        expected = make_loss(name)(logits[:rows], labels[:rows])
        torch.testing.assert_close(exported.module()(logits[:rows], labels[:rows]), expected)
        torch.testing.assert_close(compiled(logits[:rows], labels[:rows]), expected)
