"""An HTML list of flags or comments, each linking to its image."""

from collections.abc import Sequence
from datetime import tzinfo
from html import escape
from typing import Any
from urllib.parse import quote

import streamlit as st

from annotator.ui.access import served_project
from annotator.ui.shared.local_time import format_moment

STYLE = """<style>
ul.notes {list-style: none; margin: 0; padding: 0; max-height: 22rem; overflow: auto;}
.notes:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 1px;}
ul.notes li {display: flex; gap: 0.8rem; padding: 0.45rem 0; margin: 0;}
.notes li {border-top: 1px solid light-dark(#dfe3e1, #373d3b);}
.notes li:first-child {border-top: 0;}
.notes img {width: 72px; height: 54px; object-fit: cover; border-radius: 6px; display: block;}
.notes div {min-width: 0; overflow-wrap: anywhere; line-height: 1.35;}
.notes p {margin: 0 0 0.1rem; white-space: pre-line;}
.notes a {color: inherit;}
.notes small {color: light-dark(#55605c, #a9b3ae); font-size: 0.82rem;}
</style>"""


def show(rows: Sequence[dict[str, Any]], label: str, token: str, zone: tzinfo | None) -> None:
    """Show a list of flags or comments, each linking to its image.

    Args:
        label: Screen reader label.
        token: Token for thumbnails. "" omits them.
    """
    items = "".join(_render_item(row, token, zone) for row in rows)
    st.html(f'{STYLE}<ul class="notes" tabindex="0" aria-label="{escape(label)}">{items}</ul>')


def _render_item(row: dict[str, Any], token: str, zone: tzinfo | None) -> str:
    address = f"annotate?image={int(row['id'])}&amp;from=progress"
    source = f"{served_project.base_path()}/api/thumb/{int(row['id'])}?token={quote(token)}"
    picture = f'<a href="{address}" tabindex="-1"><img src="{source}" alt="" loading="lazy"></a>' if token else ""
    note, image, annotator = (escape(row[name]) for name in ("note", "image", "annotator"))
    return (
        f'<li>{picture}<div><p dir="auto">{note}</p><small><a href="{address}"><bdi>{image}</bdi></a> · '
        f"<bdi>{annotator}</bdi>, {format_moment(row['at'], zone)}</small></div></li>"
    )
