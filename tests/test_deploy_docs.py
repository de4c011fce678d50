"""Every command of docs/deploy.md runs, in its order."""

import re
import shlex
from pathlib import Path

import pytest

from annotator.exchange.setup import set_up

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "deploy.md").read_text(encoding="utf-8")


@pytest.mark.process
def test_the_commands_of_the_page_run_in_their_order(annotator, tmp_path, photos, class_file):
    set_up(tmp_path / "birds", images_folder=photos, class_file=class_file)
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line]
    assert {shlex.split(line)[1] for line in lines} >= {"doctor", "backup", "restore"}
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "annotator", line
        annotator(*words)
