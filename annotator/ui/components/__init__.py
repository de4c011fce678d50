"""Mounting the components: plain ES modules and style sheets, one folder for each page, beside shared/.

Streamlit takes a component's script as one string. That string is a loader that imports the module
components/<name>/<name>.js, with all that it imports, from /api/script (ui/serving/scripts.py). Its default export is a
class: constructed with what Streamlit hands a component, updated after every rerun of the page's script, unmounted when
the page is left (shared/page.js).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from annotator.exchange.sources.landing import size_in_words
from annotator.roles import Right
from annotator.snapshot.progress import progress_of
from annotator.store.people.daily_activity import seconds_left, today
from annotator.ui.access import context
from annotator.ui.access.access_keys import storage_name
from annotator.ui.access.middleware import SIGN_OUT
from annotator.ui.parts import frame, navigation
from annotator.ui.parts.class_adding import all_classes
from annotator.ui.serving.scripts import address_of
from annotator.ui.work.uploads import LARGEST

HERE = Path(__file__).parent
SHARED = ("shared/shared.css", "shared/stage.css")
LOADER = """
const mounted = new WeakMap();
export default function (given) {
  const component = { ...given, data: given.data[0] };
  const { data, parentElement } = component;
  let entry = mounted.get(parentElement);
  if (!entry) {
    const url = new URL(`${data.base}/api/script/${data.token}/%s`, window.location.origin).href;
    entry = { gone: false, page: null, module: import(url) };
    mounted.set(parentElement, entry);
  }
  entry.module.then((module) => {
    if (entry.gone) return;
    if (entry.page) entry.page.update(component);
    else entry.page = new module.default(component);
  });
  return () => {
    entry.gone = true;
    mounted.delete(parentElement);
    if (entry.page) entry.page.unmount();
  };
}
"""


def mount(name: str, *, styles: Sequence[str] = (), **more: object) -> None:
    """Put the component of this name on the page, with the project's classes and their version.

    Args:
        name: The name of the component and of its folder.
        styles: Further style sheets, as paths in this folder: of pages that it shows parts of.
        more: JSON values that only this component needs.
    """
    data = all_classes(context.db()) | {
        "token": frame.token(),
        "annotator": frame.annotator_name(),
        "project": storage_name(context.db()),
        "base": context.base(),
        "may_answer": frame.may(Right.ANSWER),
        "may_review": frame.may(Right.REVIEW),
        "pages": navigation.titles_and_addresses(),
    }
    _put(_component(name, tuple(styles)), data | more, key=name, on_expired_change=lambda: None)


def mount_status_bar() -> None:
    """Put the line on the page that names the project and says how far it is, who is at work and what they did today.

    It stands in the bar at the top (frame.STYLE), and asks for the name where it is not known yet.
    """
    name = frame.annotator_name()
    day = {"today": asdict(today(context.db(), name)), "day_left": seconds_left()}
    member = frame.member()
    data = {
        "token": frame.token(),
        "base": context.base(),
        "annotator": name,
        "role": member.role if member else "",
        "project": context.project_name(),
        "progress": progress_of(context.db(), name).sentence(),
        "home": context.home(),
        "sign_out": context.base() + SIGN_OUT if member else "",
    } | day
    on = {"on_change_change": frame.forget_name, "on_midnight_change": lambda: None}
    with st.container(key="who"):
        _put(_component("status_bar", (), "who"), data, key="who_line", **on)


def mount_upload() -> None:
    """Put the place on the page where files for an import are chosen or dropped (ui/work/uploads.py)."""
    data = {
        "token": frame.token(),
        "base": context.base(),
        "largest": LARGEST,
        "hint": f"or drop them here; at most {size_in_words(LARGEST)} a file. They are removed once they are imported.",
        "too_large": f"is larger than {size_in_words(LARGEST)}. Put it on the server's machine and give its path.",
    }
    _put(_component("upload", (), "upload"), data, key="upload", on_uploaded_change=lambda: None)


def mount_class_tree(on_drop: Callable[[int, int], None]) -> None:
    """Put the classes on the page as their relations order them.

    Args:
        on_drop: Called with the ids of a class and of the one onto which it was dragged.
    """
    key = "class_tree"

    def dropped() -> None:
        pair = st.session_state[key].dropped
        if isinstance(pair, list) and len(pair) == 2 and all(type(one) is int for one in pair):
            on_drop(*pair)

    data = all_classes(context.db()) | {"token": frame.token(), "base": context.base()}
    _put(_component(key, (), "tree"), data, key=key, on_dropped_change=dropped)


def _put(component: Callable, data: dict[str, Any], **options: Any) -> None:
    # In a list: Streamlit looks for data frames in a dict, and imports pandas for that, a third of a second.
    component(data=[data], **options)


@cache
def _component(name: str, styles: tuple[str, ...], part: str = "root") -> Callable:
    """Return Streamlit's component with the script and style sheets of this folder; call it with data= and key=.

    Args:
        name: The name of the component and of its folder.
        styles: Further style sheets, as paths in this folder.
        part: The CSS class of the element that its script fills; for a page it is root.
    """
    files = (*SHARED, *styles, f"{name}/{name}.css")
    css = "\n".join((HERE / file).read_text(encoding="utf-8") for file in files)
    script = LOADER % address_of(f"{name}/{name}.js")
    return component(f"annotator_{name}", html=f'<div class="{part}"></div>\n', css=css, js=script)
