"""The floor: the least that a page in a browser can do to show an image, take a label, and show the next one.

A bare Starlette page without framework or project: the next images are fetched and decoded ahead; a key or a click
POSTs the label to a route that appends it to a file and waits until it is on disk, and swaps the picture. With
`first=picture` the picture is swapped first, and the label is sent and the next images are fetched after its frame has
been painted: a page can hardly be quicker.

Each page of ours has its floor: `kind=picture`, with a button a class; `kind=grid`, 24 images at once, of which Enter
swaps all; `kind=review`, a picture with two others laid over it, of which 1 and 2 show one, and y goes on;
`kind=gallery`, all images in one list that the browser scrolls, each with a line of words, and Enter labels them all.

POST /nothing, which answers {}, is the least that a route can do.

    python -P -m harness.floor FOLDER LABELS PORT    # /?classes=20, /?kind=grid&first=picture
"""

import json
import os
import sys
from pathlib import Path

import uvicorn
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

CLASS_KEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"
TILES_PER_GRID = 24

PAGE_TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Floor</title>
<style>
  body { margin: 0; height: 100vh; display: grid; grid-template-columns: 1fr 340px; gap: 16px; font: 15px sans-serif; }
  .root { display: contents; }
  .stage { position: relative; background: #eee; }
  .stage img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; }
  .stage .tiles { display: grid; grid-template-columns: repeat(6, 1fr); grid-auto-rows: 24vh; gap: 6px; }
  .stage .tile { position: relative; }
  .stage .scroller { position: absolute; inset: 0; overflow: hidden auto; contain: strict; }
  .thumbs { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 6px; }
  .thumb { height: 170px; contain: strict; }
  .stage .thumb img { position: static; height: 140px; }
  .heatmap { opacity: 0; }
  .classes { overflow-y: auto; display: grid; grid-template-columns: 1fr 1fr; gap: 6px; align-content: start; }
  button { min-height: 44px; }
</style>
<div class="root"><div class="stage"></div><div class="classes"></div></div>
<script>
  const images = __IMAGES__, classes = __CLASSES__, keys = "__KEYS__", tiles = __TILES__;
  const chosen = new URLSearchParams(location.search);
  const kind = chosen.get("kind") ?? "picture", pictureFirst = chosen.get("first") === "picture";
  const ahead = { grid: 2, gallery: 0 }[kind] ?? 12;
  const stage = document.querySelector(".stage"), list = document.querySelector(".classes");
  const waiting = new Map();
  let at = 0;

  function load(id) {
    const picture = new Image();
    picture.decoding = "sync";
    picture.dataset.image = id % images;
    picture.src = `/image/${id % images}`;
    picture.decode();
    return picture;
  }

  function tile(id) {
    const node = document.createElement("button");
    node.className = "tile";
    node.dataset.image = id % images;
    node.append(load(id));
    return node;
  }

  function thumb(id) {
    const node = document.createElement("div");
    node.className = "thumb";
    node.dataset.image = id;
    const picture = new Image();
    picture.loading = "lazy";
    picture.src = `/image/${id}`;
    const words = document.createElement("div");
    words.className = "labels";
    node.append(picture, words);
    return node;
  }

  const build = {
    gallery() {
      const node = document.createElement("div");
      node.className = "scroller";
      const thumbs = document.createElement("div");
      thumbs.className = "thumbs";
      thumbs.append(...Array.from({ length: images }, (_, id) => thumb(id)));
      node.append(thumbs);
      return [node];
    },
    picture: (index) => [load(index)],
    grid(index) {
      const node = document.createElement("div");
      node.className = "tiles";
      node.append(...Array.from({ length: tiles }, (_, number) => tile(index * tiles + number)));
      return [node];
    },
    review(index) {
      const maps = [1, 2].map((name) => {
        const map = load(index + name);
        delete map.dataset.image;
        map.className = "heatmap";
        map.dataset.class = name;
        return map;
      });
      return [load(index), ...maps];
    },
  }[kind];

  function prepared(index) {
    if (!waiting.has(index)) waiting.set(index, build(index));
    return waiting.get(index);
  }

  function show() {
    if (kind !== "gallery" || !at) stage.replaceChildren(...prepared(at));
    waiting.delete(at);
    for (const words of stage.querySelectorAll(".labels")) words.textContent = `class ${at + 1}`;
  }

  function prefetch() {
    for (let next = 1; next <= ahead; next += 1) prepared(at + next);
  }

  function choose(name) {
    const cells = { grid: tiles, gallery: images }[kind] ?? 1;
    const label = (_, number) => ({ image: (at * cells + number) % images, class: name });
    const body = JSON.stringify(Array.from({ length: cells }, label));
    const send = () => {
      fetch("/label", { method: "POST", headers: { "content-type": "application/json" }, body });
      prefetch();
    };
    at += 1;
    if (!pictureFirst) send();
    show();
    if (pictureFirst) requestAnimationFrame(() => setTimeout(send));
  }

  function heat(name) {
    for (const map of stage.querySelectorAll(".heatmap")) map.style.opacity = map.dataset.class === name ? 0.65 : 0;
  }

  for (let index = 0; kind === "picture" && index < classes; index += 1) {
    const button = document.createElement("button");
    button.className = "class";
    button.textContent = `class ${index + 1}`;
    button.onclick = () => choose(index);
    list.append(button);
  }
  window.addEventListener("keydown", (event) => {
    const index = keys.indexOf(event.key);
    if (kind === "picture" && index >= 0 && index < classes) choose(index);
    if (["grid", "gallery"].includes(kind) && event.key === "Enter") choose(0);
    if (kind === "review" && event.key === "y") choose(0);
    if (kind === "review" && "12".includes(event.key)) heat(event.key);
  }, true);
  show();
  prefetch();
  if (kind === "review") heat("1");
</script>
"""


def build_app(folder: Path, labels: Path) -> Starlette:
    """Return the floor's application: it shows the images of a folder by name, and appends labels to a file."""
    images = sorted(folder.iterdir())
    log = labels.open("ab", buffering=0)

    async def serve_page(request: Request) -> Response:
        values = {
            "__IMAGES__": len(images),
            "__CLASSES__": int(request.query_params.get("classes", 20)),
            "__KEYS__": CLASS_KEYS,
            "__TILES__": TILES_PER_GRID,
        }
        text = PAGE_TEMPLATE
        for name, value in values.items():
            text = text.replace(name, str(value))
        return HTMLResponse(text)

    async def serve_image(request: Request) -> Response:
        path = images[request.path_params["number"]]
        return FileResponse(path, headers={"cache-control": "private, max-age=31536000, immutable"})

    def append_labels(entries: list[dict]) -> None:
        log.write(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))
        os.fsync(log.fileno())

    async def store_labels(request: Request) -> Response:
        await run_sync(append_labels, await request.json())
        return Response(status_code=204)

    async def answer_nothing(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse({})

    return Starlette(
        routes=[
            Route("/", serve_page),
            Route("/image/{number:int}", serve_image),
            Route("/label", store_labels, methods=["POST"]),
            Route("/nothing", answer_nothing, methods=["POST"]),
        ]
    )


if __name__ == "__main__":
    uvicorn.run(
        build_app(Path(sys.argv[1]), Path(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[3]), log_level="error"
    )
