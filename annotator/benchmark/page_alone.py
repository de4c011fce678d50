"""The app as `annotator serve` serves it, without the watch over a worker: a measurement starts its own, or none.

python -m annotator.benchmark.page_alone PROJECT PORT
"""

import sys
from pathlib import Path

from annotator.ui import context
from annotator.ui.server import CONFIG, page_app

if __name__ == "__main__":
    context.open_project(Path(sys.argv[1]))
    page_app().run(config={**CONFIG, "server.port": int(sys.argv[2])})
