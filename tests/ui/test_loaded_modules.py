"""What a process does not load: torch takes seconds, charts and the map half of one, the formats a tenth.

The contracts in pyproject.toml say which room may import what, at any place of a module; this is what is loaded when a
module is. How long the first page takes after a start is measured: `make bench NAME=interface`.
"""

import subprocess
import sys

import pytest

from annotator.ui.shared.navigation import find_page_module

pytestmark = pytest.mark.process

FIRST_PAGES = [find_page_module(name) for name in ("autopilot", "annotate")]
PAGES = ("annotate", "review", "gallery", "progress", "export", "settings")
WORKER = ("process", "training.train", "duties.explain", "features.embed")
# One process a list; each step imports further modules, after which none of these names may be loaded.
PROCESSES = {
    "the page's process": [
        ("annotator.cli", "numpy sqlite_utils rich annotator.store"),  # all that `annotator --help` waits for
        ("annotator.ui.server", "streamlit starlette scipy pandas"),  # and a browser, until it is answered
        (f"annotator.ui.page_app, {', '.join(FIRST_PAGES)}", "torch scipy pandas altair annotator.exchange.formats"),
        ("spmll.statistics.metrics, spmll.catalog", "torch sklearn matplotlib"),
        (", ".join(find_page_module(name) for name in PAGES), "torch"),
    ],
    "the worker": [
        ("annotator.cli", "torch pandas pyarrow sklearn scipy"),  # what every command loads
        (", ".join(f"annotator.worker.{name}" for name in WORKER), "streamlit"),
    ],
    "training": [("spmll.linear.training, spmll.methods", "torch._dynamo")],
}
TRAIN = """
import numpy as np
from spmll.linear.training import Head, TrainingSettings, fit
for _ in fit(Head(3, 2), np.eye(3, dtype=np.float32), np.eye(3, 2, dtype=np.int8), spmll.methods.make_method("gr"),
    TrainingSettings(epochs=1)): pass
"""


@pytest.mark.parametrize("process", PROCESSES)
def test_server_worker_and_training_processes_import_no_unneeded_modules(process):
    script = "import sys\n"
    for modules, strangers in PROCESSES[process]:
        script += f"import {modules}\n{TRAIN if process == 'training' else ''}"
        script += f"print('after {modules}:', *set({strangers.split()}) & set(sys.modules))\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("after ")]
    assert len(lines) == len(PROCESSES[process])
    assert all(line.endswith(":") for line in lines), f"{process} loads too much {lines}"
