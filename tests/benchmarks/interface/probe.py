"""The script that measures times, the same in every page, ours or a floor.

It runs before any script of the page, so its listeners get an event first. A time runs from the time stamp of the
trusted event to the end of the first frame that shows something new, complete: another picture, another grid, or the
heat map of another class.
"""

# `watched` says what a page is looked at for; `shown` gives it as text, null while it is not there or not complete.
PROBE_SCRIPT = """(() => {
  let root = null;
  const within = (node) => [...node.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const find = (node) => node.querySelector(".root") ?? within(node).map(find).find(Boolean);
  const page = () => {
    if (!root?.isConnected) root = document.body && find(document);
    return root;
  };
  const whole = (picture) => picture?.complete && picture.naturalWidth > 0;
  const watched = {
    picture() {
      const picture = page()?.querySelector(".stage img[data-image]");
      return whole(picture) ? picture.dataset.image : null;
    },
    grid() {
      const tiles = [...(page()?.querySelectorAll(".tile[data-image]") ?? [])];
      if (!tiles.length || !tiles.every((tile) => whole(tile.querySelector("img")))) return null;
      return tiles.map((tile) => tile.dataset.image).join(" ");
    },
    buttons: () => page()?.querySelector(".classes button")?.textContent ?? null,
    streamlit: () => ([...document.querySelectorAll("img")].find(whole)?.src ?? null),
    gallery() {
      const labels = [...(page()?.querySelectorAll(".thumb[data-image] .labels") ?? [])];
      return labels.map((one) => one.textContent).join(" ") || null;
    },
    heat() {
      const maps = [...(page()?.querySelectorAll(".stage .heatmap[data-class]") ?? [])];
      const seen = maps.filter((map) => whole(map) && Number(getComputedStyle(map).opacity) > 0.1);
      return seen.map((map) => map.dataset.class).join(" ") || null;
    },
  };
  const chosen = () => page()?.querySelector(".suggestion.selected")?.dataset.class ?? null;
  // A heat map may fade out while another fades in: what counts is one that was not there.
  const other = (before, now) => now !== null && now !== before &&
    (benchmark.watch !== "heat" || now.split(" ").some((one) => !(before ?? "").split(" ").includes(one)));
  const presses = [];
  const press = (event) => {
    if (!event.isTrusted || event.repeat) return;
    const before = watched[benchmark.watch]();
    const suggested = benchmark.watch === "picture" ? chosen() : null;
    const one = { at: event.timeStamp, key: event.key ?? "", before, suggested, milliseconds: null };
    presses.push(one);
    const look = () => requestAnimationFrame(() => {
      if (!other(before, watched[benchmark.watch]())) return look();
      const channel = new MessageChannel();
      // Posted in the frame's own callback, it arrives once that frame has been handed over to be drawn.
      channel.port1.onmessage = () => { one.milliseconds = performance.now() - one.at; };
      channel.port2.postMessage(0);
    });
    look();
  };
  addEventListener("keydown", press, true);
  addEventListener("click", press, true);
  const until = (done) => new Promise((resolve, reject) => {
    const from = performance.now();
    const look = () => {
      if (done()) resolve(done());
      else if (performance.now() - from > 15000) reject(new Error(`no ${benchmark.watch} within 15 s`));
      else setTimeout(look, 4);
    };
    look();
  });
  window.benchmark = {
    watch: "picture",
    presses,
    ready: () => until(() => watched[benchmark.watch]() !== null).then(() => presses.length),
    painted: (number) => until(() => presses[number]?.milliseconds),
  };
})()"""
