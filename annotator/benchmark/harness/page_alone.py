"""The app as `annotator serve` serves it, but nothing is read ahead, and a measurement starts its own worker, or none.

python -P -m annotator.benchmark.harness.page_alone PROJECT PORT
"""

import sys
from pathlib import Path

from annotator.ui.access import context
from annotator.ui.access.serving_modes import local
from annotator.ui.server import page_app, run_app


def serve_pages(project: Path, port: int) -> None:
    """Serve a project's pages until the process receives SIGTERM."""
    context.open_project(project)
    run_app(page_app(access=local(port)), local(port))


if __name__ == "__main__":
    serve_pages(Path(sys.argv[1]), int(sys.argv[2]))
