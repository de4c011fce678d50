"""Mounting the components: real .js and .css files, served as modules by a route of ours.

Streamlit takes a component's script as one string. Ours is a loader that imports the real module from /api/script, so
that the files stay plain ES modules that import each other.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

import streamlit as st

from annotator.records import Class
from annotator.ui import context, frame
from annotator.ui.keys import storage_name

HERE = Path(__file__).parent
SHARED = ("shared/shared.css", "shared/stage.css")
# Besides its own: what a page shows parts of.
BORROWED = {"grid": ("grid/tiles.css",), "autopilot": ("grid/tiles.css", "annotate/annotate.css")}
LOADER = """
const mounted = new WeakMap();
export default function (component) {
  const { data, parentElement } = component;
  const url = new URL(`/api/script/${data.token}/%s/%s.js`, window.location.origin).href;
  let entry = mounted.get(parentElement);
  if (!entry) {
    entry = { gone: false, page: null };
    mounted.set(parentElement, entry);
    entry.module = import(url);
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


def mount(name: str, known: Sequence[Class], **more: object) -> None:
    """Put the component of this name on the page, with what every one of them needs.

    known    the project's classes
    more     what only this one needs, as JSON
    """
    data = {
        "token": frame.token(),
        "annotator": frame.annotator_name(),
        "project": storage_name(context.db()),
        "classes": [asdict(one) for one in known],
    }
    _component(name)(data=data | more, key=name, on_expired_change=lambda: None)


@cache
def _component(name: str):
    """The component in the folder of this name, with the shared and its own styles; call it with data= and key=."""
    files = (*SHARED, *BORROWED.get(name, ()), f"{name}/{name}.css")
    css = "\n".join((HERE / file).read_text(encoding="utf-8") for file in files)
    script = LOADER % (name, name)
    return st.components.v2.component(f"annotator_{name}", html='<div class="root"></div>\n', css=css, js=script)
