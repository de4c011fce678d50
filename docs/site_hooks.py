"""Makes one site of the documents of this folder and of those at the top.

README.md becomes index.md. Links are rewritten while the site is built, so that the files themselves are right where
they are read on a disk or in a repository.
"""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
# a page's name, if another
TOP = {"README.md": "index.md", "SECURITY.md": "", "CONTRIBUTING.md": "", "CHANGELOG.md": ""}
API = """# Python interface

What `import annotator` offers; [python.md](python.md) shows it in use.

::: annotator.open
::: annotator.Project
::: annotator.Choices
::: annotator.Limits
::: annotator.AnnotatorError
"""


def on_files(files, config):
    """Add the documents that lie outside of this folder, and the page of the Python interface."""
    for name, page in TOP.items():
        files.append(File.generated(config, page or name, content=_site_links(_read(name), in_docs=False)))
    files.append(File.generated(config, "api.md", content=API))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links that leave this folder to the pages made of those documents, or name the file instead."""
    return _site_links(markdown, in_docs=True)


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _site_links(text: str, in_docs: bool) -> str:
    def lead(match: re.Match) -> str:
        words, target, rest = match[1], match[2], match[3] or ""
        inside = target.removeprefix("../") if in_docs else target
        if inside in TOP:
            return f"[{words}]({TOP[inside] or inside}{rest})"
        if not in_docs and inside.startswith("docs/"):
            return f"[{words}]({inside.removeprefix('docs/')}{rest})"
        if (in_docs and target.startswith("../")) or (
            (ROOT / inside).is_file() and not (ROOT / "docs" / inside).exists()
        ):
            return words
        return match[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)", lead, text)
