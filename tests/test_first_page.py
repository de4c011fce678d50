"""What the first page after a start waits for. How long that is `annotator bench interface --rows first-page` says."""

import subprocess
import sys


def test_the_first_page_loads_neither_torch_nor_what_only_charts_and_the_map_need():
    code = (
        "import annotator.ui.server, annotator.ui.pages.annotate, sys; "
        "print(*sorted({'torch', 'sklearn', 'matplotlib', 'altair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
