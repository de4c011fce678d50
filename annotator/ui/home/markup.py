"""The HTML of the start page, without Streamlit."""

import html
import json
import time
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote

from annotator.ui.access.security_headers import SECURITY_HEADERS

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_STORE_HEADERS = SECURITY_HEADERS | {"cache-control": "no-store", "content-security-policy": CONTENT_SECURITY_POLICY}
_PAGE_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="{base}/start/file/start/start.css">
{script}</head><body>
{body}
</body></html>
"""
UNKNOWN_VISITOR_HTML = """<p>Open the address of your project, or your invitation link, once in this browser. Then the
    projects that
you may open are listed here.</p>"""
_NO_PROJECTS_TEMPLATE = """<div class="empty"><h2>No projects yet</h2>
<p>A project is a folder of images, and the classes you look for on them.</p>
<p><a class="button main" href="{base}/start/new">New project</a></p>{sample}</div>"""
_SAMPLE_LINK_TEMPLATE = '<p><a href="{base}{page}">Try it with sample images</a></p>'


@dataclass(frozen=True)
class ProjectCard:
    """The data of one project's card on the start page."""

    name: str
    # sentences under its name
    about: tuple[str, ...] = ()
    # URL, "" while not running
    address: str = ""
    # image URL, or ""
    picture: str = ""
    # done, of: progress. `of` 0 hides it
    done: int = 0
    of: int = 0
    trouble: str = ""
    # URL for managers, or ""
    manage: str = ""
    is_archived: bool = False


def render_page(base: str, title: str, body: str, script: str = "") -> str:
    """Return a complete HTML page.

    Args:
        base: Path before /start.
        script: Script below /start/file, or "".
    """
    tag = f'<script type="module" src="{base}/start/file/{script}"></script>' if script else ""
    return _PAGE_TEMPLATE.format(title=html.escape(title), base=base, script=tag, body=body)


def render_script_page(base: str, title: str, data: dict[str, Any], script: str) -> str:
    """Return a page whose content a script draws from `data`."""
    return render_page(base, title, f'<main id="page" data-page="{html.escape(json.dumps(data))}"></main>', script)


def render_projects_page(
    base: str, cards: list[ProjectCard], may_make: bool, troubles: str, token: str, sample: str = ""
) -> str:
    """Return the list of projects, or an introduction without any.

    Args:
        base: Path before /start.
        troubles: HTML of unusable projects.
        sample: Page of the sample project, or "".
    """
    data = html.escape(json.dumps({"base": base, "token": token}))
    button = f'<a class="button main" href="{base}/start/new">New project</a>' if may_make and cards else ""
    archived = [card for card in cards if card.is_archived]
    if not cards:
        offer = _SAMPLE_LINK_TEMPLATE.format(base=base, page=sample) if sample else ""
        listed = _NO_PROJECTS_TEMPLATE.format(base=base, sample=offer) if may_make else UNKNOWN_VISITOR_HTML
    elif len(archived) == len(cards):
        listed = "<p>All projects are archived.</p>"
    else:
        listed = _render_cards([card for card in cards if not card.is_archived])
    if archived:
        listed += f'<details class="archived"><summary>Archived ({len(archived)})</summary>{_render_cards(archived)}'
        listed += '<p class="error" role="alert"></p></details>'
    body = f'<main id="page" data-page="{data}"><header><h1>Projects</h1>{button}</header>{listed}{troubles}</main>'
    return render_page(base, "Projects · Annotator", body, "start/archived_projects.js" if archived else "")


def render_trouble(name: str, why: str) -> str:
    return f"<section><h2><bdi>{html.escape(name)}</bdi> cannot be opened</h2><pre>{html.escape(why)}</pre></section>"


def render_unfinished(base: str, name: str, images: str) -> str:
    """Return the section of an unfinished project (`images` "" if unknown)."""
    of = f" of the images in {images}" if images else ""
    link = f'<a class="button" href="{base}/start/new?unfinished={quote(name)}">Go on or remove it</a>'
    about = f"<p>It was being made{html.escape(of)} when Annotator was ended.</p><p>{link}</p>"
    return f"<section><h2><bdi>{html.escape(name)}</bdi> is not finished</h2>{about}</section>"


def format_last_worked_on(at: float | None) -> str:
    if at is None:
        return ""
    days = (date.fromtimestamp(time.time()) - date.fromtimestamp(at)).days
    if days <= 1:
        return "Last worked on today" if days <= 0 else "Last worked on yesterday"
    day = date.fromtimestamp(at)
    return f"Last worked on {days} days ago" if days < 30 else f"Last worked on {day.day} {day:%B %Y}"


def _render_cards(cards: list[ProjectCard]) -> str:
    return f'<ul class="projects">{"".join(map(_render_card, cards))}</ul>'


def _render_card(card: ProjectCard) -> str:
    name, about = html.escape(card.name), [html.escape(sentence) for sentence in card.about]
    src = f' src="{html.escape(card.picture)}" loading="lazy"' if card.picture else ""
    picture = f'<img alt=""{src} width="96" height="72">' if src else '<span class="picture"></span>'
    title = (
        f'<a class="name" dir="auto" href="{html.escape(card.address)}">{name}</a>'
        if card.address
        else f'<b dir="auto">{name}</b>'
    )
    lines = "".join(f'<div class="quiet">{sentence}</div>' for sentence in about)
    bar = ""
    if card.of:
        label = f"{name}: {about[0] if about else ''}"
        bar = f'<progress max="{card.of}" value="{card.done}" aria-label="{label}"></progress>'
    why = f"<pre>{html.escape(card.trouble)}</pre>" if card.trouble else ""
    back = ""
    if card.is_archived and card.manage:
        back = f'<button type="button" data-project="{name}" aria-label="Bring {name} back">Bring back</button>'
    label = f"Rename, archive, back up or delete {name}"
    more = f'<a class="more" href="{html.escape(card.manage)}" aria-label="{label}" title="{label}">⋯</a>'
    return f'<li>{picture}<div class="about">{title}{lines}{bar}{why}{back}</div>{more if card.manage else ""}</li>'
