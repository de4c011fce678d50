// @ts-check
/**
 * Review: one image, the labels the model thinks are missing, each with where it looked. Accept, reject or unsure by
 * one key; after the last suggestion the next image is there at once.
 */

import { Api, rememberName } from "./api.js";
import { STATE_WORDS, el, kbd, keyButton, showFoot } from "./dom.js";
import { Hand } from "./hand.js";
import { listen } from "./keys.js";
import { Outbox } from "./outbox.js";

const HEATMAPS_AHEAD = 3; // images whose heat maps are fetched before they are needed

/** @param {any} component */
export function mount(component) {
  return new ReviewPage(component);
}

class ReviewPage {
  /** @param {any} component */
  constructor({ data, parentElement, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    this.root = parentElement;
    rememberName(data.annotator);
    this.data = data;
    this.api = new Api(data.token);
    this.outbox = new Outbox({
      api: this.api,
      project: data.project,
      annotator: data.annotator,
      onChange: () => this.showFoot(),
      onExpired: () => this.renew(),
    });
    this.heatmaps = new Heatmaps(this.api, () => this.showHeatmap());
    this.names = new Map(data.classes.map((one) => [one.id, one.name]));
    /** @type {any[]} */
    this.history = [];
    this.at = 0;
    this.heat = true;
    this.build();
    this.hand = new Hand({
      api: this.api,
      outbox: this.outbox,
      mode: "review",
      threshold: () => Number(this.threshold.value) / 100,
      onShow: () => this.show(),
      onNews: () => this.showNews(),
    });
    this.stopListening = listen(parentElement, (key, event) => this.key(key, event));
    this.adopting = window.setInterval(() => this.outbox.adopt(), 3000);
  }

  /** @param {any} component */
  update({ data, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    const renewed = data.token !== this.api.token;
    this.data = data;
    this.api.token = data.token;
    this.outbox.annotator = data.annotator;
    this.names = new Map(data.classes.map((one) => [one.id, one.name]));
    if (renewed) this.outbox.flush();
  }

  unmount() {
    this.stopListening();
    clearInterval(this.adopting);
    this.outbox.close();
    this.hand.close();
    this.heatmaps.close();
  }

  build() {
    this.stage = el("div", { class: "stage" });
    this.caption = el("div", { class: "caption" });
    this.known = el("div", { class: "chips", "aria-label": "Labels of this image" });
    this.list = el("div", { class: "suggestions", role: "listbox", "aria-label": "Suggested labels" });
    this.opacity = el("input", {
      type: "range", min: "0", max: "100", value: "65", "aria-label": "Strength of the heat map",
      oninput: () => this.showHeatmap(),
    });
    const tools = el(
      "div",
      { class: "tools", role: "group", "aria-label": "Actions" },
      keyButton("Accept", "Y", () => this.answer(1), { class: "yes" }),
      keyButton("Reject", "N", () => this.answer(-1), { class: "no" }),
      keyButton("Unsure", "U", () => this.answer(0)),
      keyButton("Nothing else here", "Enter", () => this.done()),
      keyButton("Skip", " ", () => this.pass()),
      keyButton("Undo", "Backspace", () => this.undo()),
    );
    this.threshold = el("input", {
      type: "range", min: "5", max: "99", value: String(Math.round(this.data.threshold * 100)),
      "aria-label": "Show suggestions from this probability on",
      oninput: () => this.showThreshold(), onchange: () => this.hand.restart(),
    });
    this.thresholdText = el("output", {});
    const sliders = el("div", { class: "sliders" },
      el("label", { class: "heat" }, el("span", {}, "Heat map"), kbd("H"), this.opacity),
      el("label", { class: "heat", title: "Lower: more suggestions, more of them wrong" },
        el("span", {}, "Suggest from"), this.threshold, this.thresholdText));
    this.showThreshold();
    this.foot = el("div", { class: "foot" });
    const side = el("div", { class: "side" }, el("h4", {}, "Is this on the image?"), this.list, tools, sliders);
    const left = el("div", { class: "left" }, this.stage, this.caption, this.known);
    this.root.querySelector(".root").replaceChildren(el("div", { class: "work" }, left, side), this.foot);
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event */
  key(key, event) {
    if (event.repeat && !key.startsWith("Arrow")) return true;
    const commands = {
      y: () => this.answer(1),
      n: () => this.answer(-1),
      u: () => this.answer(0),
      h: () => this.toggleHeat(),
      Enter: () => this.done(),
      " ": () => this.pass(),
      Backspace: () => this.undo(),
      undo: () => this.undo(),
      ArrowDown: () => this.select(this.at + 1),
      ArrowUp: () => this.select(this.at - 1),
    };
    if (/^[1-9]$/.test(key)) this.select(Number(key) - 1);
    else if (commands[key]) commands[key]();
    else return false;
    return true;
  }

  /** @param {number} state */
  answer(state) {
    const item = this.ready();
    const chip = item?.suggestions[this.at];
    if (!chip) return;
    const uuid = this.outbox.add({
      action: "label", source: "suggestion", image: item.id, class: chip.class_id, state,
      run: chip.run_id, score: chip.probability, milliseconds: this.hand.looked,
    });
    this.hand.count(0, 1);
    this.remember(item, uuid, { chip, given: chip.given });
    chip.given = state;
    const open = item.suggestions.findIndex((one) => one.given == null);
    if (open < 0) this.leave();
    else {
      const next = item.suggestions.findIndex((one, index) => index > this.at && one.given == null);
      this.select(next < 0 ? open : next);
    }
  }

  done() {
    const item = this.ready();
    if (!item) return;
    const uuid = this.outbox.add({ action: "done", source: "done", image: item.id, milliseconds: this.hand.looked });
    this.hand.count(0, 1);
    this.remember(item, uuid, {});
    this.leave();
  }

  /** On to the next image, this one's open suggestions left open. */
  pass() {
    const item = this.hand.current;
    if (!item) return;
    this.remember(item, null, {});
    this.leave();
  }

  undo() {
    const last = this.history.pop();
    if (!last) {
      this.caption.replaceChildren("Nothing left to undo on this page.");
      return;
    }
    if (last.uuid) this.hand.count(0, -1);
    if (last.uuid) this.outbox.add({ action: "undo", undoes: last.uuid, source: "suggestion" });
    if (last.chip) last.chip.given = last.given;
    this.hand.bringBack(last.item);
    this.show();
    if (last.chip) this.select(last.item.suggestions.indexOf(last.chip));
  }

  leave() {
    this.hand.passed.add(this.hand.current.id);
    this.hand.advance();
  }

  /** @param {any} item @param {string | null} uuid @param {object} more */
  remember(item, uuid, more) {
    this.history.push({ item, uuid, ...more });
    if (this.history.length > 500) this.history.shift();
  }

  ready() {
    if (this.hand.ready) return this.hand.current;
    if (this.hand.current) this.caption.replaceChildren("The picture is still on its way.");
    return null;
  }

  /** @param {number} index */
  select(index) {
    const count = this.hand.current?.suggestions.length ?? 0;
    if (count) this.at = (index + count) % count;
    this.showSuggestions();
  }

  showThreshold() {
    this.thresholdText.replaceChildren(`${this.threshold.value} %`);
  }

  toggleHeat() {
    this.heat = !this.heat;
    this.showHeatmap();
  }

  // What the person sees

  show() {
    const item = this.hand?.current;
    this.at = Math.max(0, item?.suggestions.findIndex((one) => one.given == null) ?? 0);
    if (!item) {
      this.stage.replaceChildren(el("p", { class: "empty" }, this.hand?.news.empty || "One moment..."));
      this.caption.replaceChildren();
    } else if (item.broken) {
      const text = `${item.name} cannot be shown: ${item.broken} Press Space to go on.`;
      this.stage.replaceChildren(el("p", { class: "empty" }, text));
    } else if (item.loaded) {
      this.overlay = el("img", { class: "heatmap", alt: "" });
      this.stage.replaceChildren(el("div", { class: "frame", style: `--ratio:${item.width / item.height}` }, item.picture, this.overlay));
      this.caption.replaceChildren(item.name);
    } else {
      this.stage.replaceChildren(el("p", { class: "empty" }, "Loading the picture..."));
    }
    this.showKnown(item);
    this.showSuggestions();
    this.prefetchHeatmaps();
  }

  /** @param {any} item */
  showKnown(item) {
    const labels = (item?.labels ?? []).filter((label) => label.state !== -1);
    this.known.replaceChildren(
      ...labels.map((label) =>
        el("span", { class: "chip", "data-state": STATE_WORDS[label.state] },
          `${this.names.get(label.class) ?? "?"}${label.state === 1 ? "" : ` (${STATE_WORDS[label.state]})`}`)),
    );
  }

  showSuggestions() {
    const chips = this.hand?.current?.suggestions ?? [];
    this.list.replaceChildren(
      ...chips.map((chip, index) =>
        el(
          "button",
          {
            type: "button", role: "option", class: "suggestion", "aria-selected": String(index === this.at),
            "data-class": chip.class_id, "data-given": chip.given == null ? "" : STATE_WORDS[chip.given],
            onclick: () => this.select(index), onpointerenter: () => index !== this.at && this.select(index),
          },
          kbd(String(index + 1)),
          el("span", { class: "name" }, this.names.get(chip.class_id) ?? "?"),
          el("span", { class: "bar" }, el("span", { style: `width:${Math.round(chip.probability * 100)}%` })),
          el("span", { class: "percent" }, `${Math.round(chip.probability * 100)} %`),
        )),
    );
    this.showHeatmap();
  }

  showHeatmap() {
    const item = this.hand?.current;
    const chip = item?.suggestions[this.at];
    if (!this.overlay || !item?.loaded) return;
    const map = chip && this.heat ? this.heatmaps.get(chip) : null;
    this.overlay.style.opacity = map?.url ? String(Number(this.opacity.value) / 100) : "0";
    this.overlay.dataset.class = map?.url ? String(chip.class_id) : "";
    if (map?.url && this.overlay.src !== map.url) this.overlay.src = map.url;
    this.stage.classList.toggle("drawing", Boolean(map && !map.url && !map.problem));
    this.caption.replaceChildren(item.name, ...(map?.problem ? [` - no heat map: ${map.problem}`] : []));
  }

  prefetchHeatmaps() {
    const items = [this.hand?.current, ...(this.hand?.queue ?? []).slice(0, HEATMAPS_AHEAD)].filter(Boolean);
    this.heatmaps.want(items.flatMap((item) => item.suggestions.slice(0, 4)));
  }

  showNews() {
    if (!this.hand.current) this.show();
    else this.prefetchHeatmaps();
    this.showFoot();
  }

  showFoot() {
    if (this.hand) showFoot(this.foot, this.outbox, this.hand);
  }
}

/** Heat maps as they come: the one that is looked at first, two requests at a time, so that pictures are not held up. */
class Heatmaps {
  /** @param {Api} api @param {() => void} onNew */
  constructor(api, onNew) {
    this.api = api;
    this.onNew = onNew;
    /** @type {Map<string, {url: string, problem: string, chip: any, busy: boolean}>} */
    this.known = new Map();
    /** @type {any[]} */
    this.wanted = [];
    this.busy = 0;
    this.closed = false;
  }

  /** @param {any} chip */
  get(chip) {
    const key = keyOf(chip);
    let map = this.known.get(key);
    if (!map) {
      map = { url: "", problem: "", chip, busy: false };
      this.known.set(key, map);
    }
    if (!map.url && !map.problem) {
      this.wanted = [chip, ...this.wanted.filter((other) => keyOf(other) !== key)];
      this.#work();
    }
    return map;
  }

  /** @param {any[]} chips */
  want(chips) {
    this.wanted = chips.filter((chip) => !this.known.get(keyOf(chip))?.url);
    this.#work();
  }

  close() {
    this.closed = true;
    for (const map of this.known.values()) if (map.url) URL.revokeObjectURL(map.url);
  }

  #work() {
    while (this.busy < 2 && this.wanted.length && !this.closed) {
      const chip = this.wanted.shift();
      const key = keyOf(chip);
      const map = this.known.get(key) ?? { url: "", problem: "", chip, busy: false };
      this.known.set(key, map);
      if (map.busy || map.url || map.problem) continue;
      map.busy = true;
      this.busy += 1;
      this.#fetch(chip, map).finally(() => {
        map.busy = false;
        this.busy -= 1;
        if (this.closed) return;
        if (this.known.size > 400) this.#drop();
        this.onNew();
        this.#work();
      });
    }
  }

  /** @param {any} chip @param {{url: string, problem: string}} map */
  async #fetch(chip, map) {
    for (let tries = 0; tries < 5 && !this.closed; tries += 1) {
      try {
        const url = this.api.url(`/api/heatmap/${chip.run_id}/${chip.image_id}/${chip.class_id}`);
        const response = await fetch(url);
        if (response.status === 200) {
          map.url = URL.createObjectURL(await response.blob());
          return;
        }
        if (response.status !== 202) {
          map.problem = (await response.json().catch(() => ({}))).error ?? `status ${response.status}`;
          return;
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
    map.problem = "the worker has not drawn it; is it running?";
  }

  #drop() {
    for (const [key, map] of [...this.known].slice(0, 100)) {
      if (map.url) URL.revokeObjectURL(map.url);
      this.known.delete(key);
    }
  }
}

/** @param {any} chip */
function keyOf(chip) {
  return `${chip.run_id}/${chip.image_id}/${chip.class_id}`;
}
