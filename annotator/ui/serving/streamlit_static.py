"""Streamlit's static files and its HTML page, read without importing Streamlit, which takes a third of a second."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

MAX_KEPT_BYTES = 1_000_000  # of the charts' libraries, which few pages need, nothing is kept in memory
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}  # not by mimetypes: systems differ
# Their names hold a digest of their content.
CACHE_HEADERS = {"cache-control": "public, max-age=31536000, immutable"}
INDEX_HEADERS = {"cache-control": "no-cache"}
STREAMLIT_TITLE = "<title>Streamlit</title>"  # until the script of the page has given it another
TITLE_WITH_BACKEND_URL = (
    "<title>Annotator</title><script>window.__streamlit = {BACKEND_BASE_URL: window.location.origin + '%s'}</script>"
)
# What every page of ours draws first: Streamlit requests these only when the first elements have arrived.
FIRST_ELEMENT_SCRIPTS = ("BidiComponent", "Html")
_IMPORT_PATTERN = re.compile(r'\b(?:from|import)"\./([^"]+\.js)"')


@cache
def get_static_folder() -> Path:
    """Return the folder with Streamlit's index.html, whose subfolder `static` has all other files."""
    spec = find_spec("streamlit")
    if spec is None or spec.origin is None:
        raise RuntimeError("Streamlit is not installed. Install the version that pyproject.toml names.")
    return Path(spec.origin).parent / "static"


@cache
def list_static_files() -> dict[str, Path]:
    """Return URL path -> file, such as /static/js/index.js, for the files that are served from memory."""
    folder = get_static_folder() / "static"
    return {
        f"/static/{path.relative_to(folder).as_posix()}": path
        for path in folder.rglob("*")
        if path.suffix in MEDIA_TYPES and path.stat().st_size <= MAX_KEPT_BYTES
    }


@cache
def render_index_page(base: str) -> str:
    """Return Streamlit's HTML page with the server's URL, which saves two failing requests.

    It also names the scripts of the first elements, which the browser then loads with the others.

    Args:
        base: URL prefix of the app: letters, digits and . _ ~ - / only (serving_modes.py).
    """
    page = (get_static_folder() / "index.html").read_text(encoding="utf-8")
    page = page.replace(STREAMLIT_TITLE, TITLE_WITH_BACKEND_URL % base)
    links = (
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">\n' for name in _find_first_scripts(page)
    )
    return page.replace("</head>", f"{''.join(links)}</head>")


def list_preloads() -> list[str]:
    """Return the tags of the HTML page that load scripts and styles, for a page that is shown before it."""
    tags = re.findall(r'<link rel="(?:modulepreload|stylesheet)"[^>]*>', render_index_page(""))
    entry = re.search(r'<script type="module" crossorigin src="([^"]+)">', render_index_page(""))
    return [*([f'<link rel="modulepreload" crossorigin href="{entry[1]}">'] if entry else []), *tags]


def _find_first_scripts(page: str) -> list[str]:
    """Return the names of the first elements' scripts and of what they import, but for those that the page names."""
    folder = get_static_folder() / "static" / "js"
    waiting = [path.name for name in FIRST_ELEMENT_SCRIPTS for path in folder.glob(f"{name}.*.js")]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        if name not in found and name not in page and (folder / name).is_file():
            found[name] = None
            waiting += _IMPORT_PATTERN.findall((folder / name).read_text(encoding="utf-8"))
    return list(found)
