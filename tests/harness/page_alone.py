"""The app as `annotator serve` serves it, but nothing is read ahead, and a measurement starts its own worker, or none.

python -P -m harness.page_alone PROJECT PORT
"""

import sys
from pathlib import Path

from annotator.ui.access import served_project
from annotator.ui.access.serving_modes import build_local_access
from annotator.ui.page_app import build_page_app, run_app


def serve_pages(project: Path, port: int) -> None:
    """Serve a project's pages until the process receives SIGTERM."""
    served_project.open_project(project)
    run_app(build_page_app(access=build_local_access(port)), build_local_access(port))


if __name__ == "__main__":
    serve_pages(Path(sys.argv[1]), int(sys.argv[2]))
