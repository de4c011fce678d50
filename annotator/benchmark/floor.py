"""The floor: the least that a page in a browser can do to show an image, take a label, and show the next one.

A bare Starlette page, no framework, no project: the images that come next are fetched and decoded ahead, a key or a
click POSTs the label to a route that appends it to a file and waits until it is on disk, and swaps the picture. With
`first=picture` it is as quick as a page can be made: the picture is swapped at once, and the label is sent and the
next images are fetched after its frame has been drawn.

    python -m annotator.benchmark.floor FOLDER LABELS PORT        then open /?classes=20 or /?classes=20&first=picture
"""

import json
import os
import sys
from pathlib import Path

import uvicorn
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

KEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Floor</title>
<style>
  body { margin: 0; height: 100vh; display: grid; grid-template-columns: 1fr 340px; gap: 16px; font: 15px sans-serif; }
  .stage { position: relative; background: #eee; }
  .stage img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; }
  .classes { overflow-y: auto; display: grid; grid-template-columns: 1fr 1fr; gap: 6px; align-content: start; }
  button { min-height: 44px; }
</style>
<div class="stage"></div><div class="classes"></div>
<script>
  const images = __IMAGES__, classes = __CLASSES__, keys = "__KEYS__";
  const AHEAD = 12, pictureFirst = new URLSearchParams(location.search).get("first") === "picture";
  const stage = document.querySelector(".stage"), list = document.querySelector(".classes");
  const pictures = new Map();
  let at = 0;

  function load(index) {
    const id = index % images;
    if (!pictures.has(index)) {
      const picture = new Image();
      picture.decoding = "sync";
      picture.dataset.image = id;
      picture.src = `/image/${id}`;
      picture.decode();
      pictures.set(index, picture);
    }
    return pictures.get(index);
  }

  function show() {
    stage.replaceChildren(load(at));
    pictures.delete(at);
  }

  function prefetch() {
    for (let ahead = 1; ahead <= AHEAD; ahead += 1) load(at + ahead);
  }

  function choose(name) {
    const body = JSON.stringify({ image: at % images, class: name });
    const send = () => {
      fetch("/label", { method: "POST", headers: { "content-type": "application/json" }, body });
      prefetch();
    };
    at += 1;
    if (!pictureFirst) send();
    show();
    if (pictureFirst) requestAnimationFrame(() => setTimeout(send));
  }

  for (let index = 0; index < classes; index += 1) {
    const button = document.createElement("button");
    button.className = "class";
    button.textContent = `class ${index + 1}`;
    button.onclick = () => choose(index);
    list.append(button);
  }
  window.addEventListener("keydown", (event) => {
    const index = keys.indexOf(event.key);
    if (index >= 0 && index < classes) choose(index);
  }, true);
  show();
  prefetch();
</script>
"""


def build_app(folder: Path, labels: Path) -> Starlette:
    """The floor's application: the images of a folder, in the order of their names; labels are appended to a file."""
    images = sorted(folder.iterdir())
    kept = labels.open("ab", buffering=0)

    async def page(request: Request) -> Response:
        classes = int(request.query_params.get("classes", 20))
        text = PAGE.replace("__IMAGES__", str(len(images))).replace("__CLASSES__", str(classes))
        return HTMLResponse(text.replace("__KEYS__", KEYS))

    async def image(request: Request) -> Response:
        path = images[request.path_params["number"]]
        return FileResponse(path, headers={"cache-control": "private, max-age=31536000, immutable"})

    def append(entry: dict) -> None:
        kept.write(json.dumps(entry).encode() + b"\n")
        os.fsync(kept.fileno())

    async def label(request: Request) -> Response:
        await run_sync(append, await request.json())
        return Response(status_code=204)

    return Starlette(
        routes=[Route("/", page), Route("/image/{number:int}", image), Route("/label", label, methods=["POST"])]
    )


if __name__ == "__main__":
    uvicorn.run(
        build_app(Path(sys.argv[1]), Path(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[3]), log_level="error"
    )
