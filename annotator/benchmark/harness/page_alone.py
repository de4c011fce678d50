"""The app as `annotator serve` serves it, but without a worker: a measurement starts its own, or none.

python -P -m annotator.benchmark.harness.page_alone PROJECT PORT
"""

import sys
from pathlib import Path

from annotator.ui import context
from annotator.ui.server import page_app
from annotator.ui.streamlit_options import options

if __name__ == "__main__":
    context.open_project(Path(sys.argv[1]))
    config = options(int(sys.argv[2]))
    page_app().run(config=config)
