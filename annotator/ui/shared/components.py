"""Mounting of the page components: plain ES modules and style sheets, one folder per page."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import streamlit as st

from annotator.roles import Right
from annotator.snapshot.project_progress import load_progress
from annotator.store.people.daily_activity import get_seconds_until_midnight, load_daily_activity
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import build_name_cookie_name, get_storage_name
from annotator.ui.access.middleware import SIGN_OUT_PATH
from annotator.ui.serving.script_bundles import COMPONENTS_FOLDER, get_script_url
from annotator.ui.shared import navigation
from annotator.ui.shared.annotator_name import create_token, forget_name, require_annotator_name
from annotator.ui.shared.page_access import get_member, has_right
from annotator.ui.shared.page_classes import build_classes_json
from annotator.ui.streamlit_features import register_component

SHARED_STYLES = ("shared/shared.css", "shared/stage.css")
CONTRAST_STYLE = "shared/forced_colors.css"  # after all others, which it overrides
LOADER_SCRIPT = """
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


def mount_component(name: str, *, styles: Sequence[str] = (), **extra_data: object) -> None:
    """Put the named component on the page.

    Args:
        styles: Further style sheets, as paths in this folder.
        extra_data: JSON values for this component.
    """
    data = build_classes_json(served_project.db()) | {
        "token": create_token(),
        "annotator": require_annotator_name(),
        "project": get_storage_name(served_project.db()),
        "name_cookie": build_name_cookie_name(served_project.db()),
        "base": served_project.base_path(),
        "may_answer": has_right(Right.ANSWER),
        "may_review": has_right(Right.REVIEW),
        "pages": navigation.build_titles_and_urls(),
    }
    call_component(get_component(name, tuple(styles)), data | extra_data, key=name, on_expired_change=lambda: None)


def mount_status_bar() -> None:
    """Put the status bar on the page, which asks for a missing annotator name."""
    name = require_annotator_name()
    day = {"today": asdict(load_daily_activity(served_project.db(), name)), "day_left": get_seconds_until_midnight()}
    member = get_member()
    data = {
        "token": create_token(),
        "base": served_project.base_path(),
        "annotator": name,
        "role": member.role if member else "",
        "name_cookie": build_name_cookie_name(served_project.db()),
        "project": served_project.project_name(),
        "progress": load_progress(served_project.db(), name).sentence(),
        "home": served_project.home_url(),
        "sign_out": served_project.base_path() + SIGN_OUT_PATH if member else "",
    } | day
    on = {"on_change_change": forget_name, "on_midnight_change": lambda: None}
    with st.container(key="who"):
        call_component(get_component("status_bar", (), "who"), data, key="who_line", **on)


def call_component(component: Callable, data: dict[str, Any], **options: Any) -> None:
    # In a list: Streamlit looks for data frames in a dict, and imports pandas for that, a third of a second.
    component(data=[data], **options)


@cache
def get_component(name: str, styles: tuple[str, ...], part: str = "root", folder: str = "") -> Callable:
    """Return this folder's Streamlit component.

    Args:
        part: CSS class of its root element.
        folder: Folder of its files. Empty selects `name`.
    """
    path = f"{folder or name}/{name}"
    files = (*SHARED_STYLES, *styles, f"{path}.css", CONTRAST_STYLE)
    css = "\n".join((COMPONENTS_FOLDER / file).read_text(encoding="utf-8") for file in files)
    script = LOADER_SCRIPT % get_script_url(f"{path}.js")
    return register_component(f"annotator_{name}", html=f'<div class="{part}"></div>\n', css=css, js=script)
