// @ts-check
/**
 * Annotate: one image, one key, the next image. The decision is bound to the image that is on screen, here in the
 * browser, before anything is sent.
 */

import { Api, rememberName } from "./api.js";
import { STATE_WORDS, afterPaint, capital, el, kbd, keyButton, showFoot } from "./dom.js";
import { Hand } from "./hand.js";
import { CLASS_KEYS, listen } from "./keys.js";
import { Outbox } from "./outbox.js";

const PRESENT = 1;
const UNSURE = 0;

/** @param {any} component */
export function mount(component) {
  return new AnnotatePage(component);
}

class AnnotatePage {
  /** @param {any} component */
  constructor({ data, parentElement, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    this.root = parentElement;
    this.drawFoot = afterPaint(() => showFoot(this.foot, this.outbox, this.hand));
    rememberName(data.annotator);
    this.api = new Api(data.token);
    this.outbox = new Outbox({
      api: this.api,
      project: data.project,
      annotator: data.annotator,
      onChange: () => this.showFoot(),
      onExpired: () => this.renew(),
    });
    /** @type {{uuid: string | null, image: number, item: any}[]} */
    this.history = [];
    this.stay = false;
    this.unsure = false;
    this.build();
    this.setClasses(data.classes);
    this.hand = new Hand({
      api: this.api,
      outbox: this.outbox,
      mode: "annotate",
      threshold: () => null,
      onShow: () => this.show(),
      onNews: () => this.showNews(),
    });
    this.stopListening = listen(parentElement, (key, event) => this.key(key, event));
    this.adopting = window.setInterval(() => this.outbox.adopt(), 3000);
    this.loadRecent();
  }

  /** A rerun of the page: a fresh pass, perhaps another class. @param {any} component */
  update({ data, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    if (this.api.token !== data.token) {
      this.api.token = data.token;
      this.outbox.annotator = data.annotator;
      this.outbox.flush();
      this.hand.ask();
    }
    if (JSON.stringify(data.classes) !== JSON.stringify(this.classes)) this.setClasses(data.classes);
  }

  unmount() {
    this.stopListening();
    clearInterval(this.adopting);
    this.outbox.close();
    this.hand.close();
  }

  build() {
    this.stage = el("div", { class: "stage" });
    this.caption = el("div", { class: "caption" });
    this.chips = el("div", { class: "chips", "aria-label": "Labels of this image" });
    this.search = el("input", {
      type: "search",
      placeholder: "Type to find a class",
      "aria-label": "Find a class",
      "aria-keyshortcuts": "/",
      autocomplete: "off",
      oninput: () => this.filter(),
    });
    this.list = el("div", { class: "classes", role: "group", "aria-label": "Classes" });
    this.tools = el(
      "div",
      { class: "tools", role: "group", "aria-label": "Other actions" },
      keyButton("Undo", "Backspace", () => this.undo()),
      keyButton("Skip", " ", () => this.skip()),
      keyButton("Nothing else here", "Enter", () => this.done()),
      (this.unsureButton = keyButton("Unsure", "-", () => this.toggleUnsure(), { "aria-pressed": "false" })),
      (this.stayButton = keyButton("Stay", ".", () => this.toggleStay(), { "aria-pressed": "false" })),
    );
    this.foot = el("div", { class: "foot" });
    const side = el("div", { class: "side" }, el("div", { class: "find" }, this.search, kbd("/")), this.list, this.tools);
    const picture = el("div", { class: "left" }, this.stage, this.caption, this.chips);
    this.help = this.buildHelp();
    const main = el("div", { class: "work" }, picture, side);
    this.root.querySelector(".root").replaceChildren(main, this.foot, this.help);
  }

  buildHelp() {
    const rows = [
      ["1", "the class with that key is on the image; on to the next image"],
      ["Shift", "held with a class key: the same, and stay on this image"],
      ["/", "find a class by its name, Enter takes the first"],
      [" ", "skip: the image comes back later"],
      ["Enter", "nothing else here: every class not answered is absent, the image is complete"],
      ["-", "the next class is marked unsure"],
      [".", "stay on an image until you go on with Space"],
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      ["?", "this list"],
    ];
    const dialog = el(
      "dialog",
      { "aria-label": "Keys" },
      el("h3", {}, "Keys"),
      el("dl", {}, ...rows.flatMap(([key, text]) => [el("dt", {}, kbd(key)), el("dd", {}, text)])),
      el("form", { method: "dialog" }, el("button", {}, "Close")),
    );
    return /** @type {HTMLDialogElement} */ (dialog);
  }

  /** @param {{id: number, name: string, description: string}[]} classes */
  setClasses(classes) {
    this.classes = classes;
    this.names = new Map(classes.map((one) => [one.id, one.name]));
    /** @type {Map<number, number>} what the buttons show */
    this.marked = new Map();
    this.byKey = new Map();
    this.buttons = new Map();
    const nodes = classes.map((one, index) => {
      const key = CLASS_KEYS[index];
      if (key) this.byKey.set(key, one);
      const button = el(
        "button",
        {
          type: "button",
          class: "class",
          title: one.description || one.name,
          "data-class": one.id,
          "aria-keyshortcuts": key,
          "aria-pressed": "false",
          onclick: (/** @type {MouseEvent} */ event) => this.choose(one, event.shiftKey),
        },
        el("span", {}, one.name),
        ...(key ? [kbd(key)] : []),
      );
      this.buttons.set(one.id, button);
      return button;
    });
    this.list.replaceChildren(...nodes);
    this.filter();
    if (this.hand) this.showLabels();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event */
  key(key, event) {
    if (this.help.open) {
      if (key === "?" || key === "Escape") this.help.close();
      return true;
    }
    if (this.root.activeElement === this.search) return this.searchKey(event);
    const one = this.byKey.get(key);
    if (one) {
      if (!event.repeat) this.choose(one, event.shiftKey);
      return true;
    }
    const command = {
      "/": () => this.search.focus(),
      " ": () => !event.repeat && this.skip(),
      Enter: () => !event.repeat && this.done(),
      Backspace: () => this.undo(),
      undo: () => this.undo(),
      "-": () => this.toggleUnsure(),
      ".": () => this.toggleStay(),
      "?": () => this.help.showModal(),
    }[key];
    if (!command) return false;
    command();
    return true;
  }

  /** @param {KeyboardEvent} event true when the field itself has no use for the key */
  searchKey(event) {
    const first = this.found[0];
    if (event.key !== "Escape" && !(event.key === "Enter" && first)) return false;
    this.search.value = "";
    this.filter();
    this.search.blur();
    if (event.key === "Enter") this.choose(first, event.shiftKey);
    return true;
  }

  /** Show the classes that fit what is typed: names that begin with it, then contain it, then have its letters in order. */
  filter() {
    const typed = this.search.value.trim().toLowerCase();
    const ranked = this.classes
      .map((one, index) => ({ one, index, rank: fit(one.name.toLowerCase(), typed) }))
      .filter((entry) => entry.rank < Infinity)
      .sort((a, b) => a.rank - b.rank || a.index - b.index);
    this.found = ranked.map((entry) => entry.one);
    const shown = new Map(ranked.map((entry, place) => [entry.one.id, place]));
    for (const [id, button] of this.buttons) {
      button.hidden = !shown.has(id);
      button.style.order = typed ? String(shown.get(id)) : "";
      button.classList.toggle("first", typed !== "" && shown.get(id) === 0);
    }
  }

  /** @param {{id: number, name: string}} one @param {boolean} stay */
  choose(one, stay) {
    if (!this.canDecide()) return;
    const state = this.unsure ? UNSURE : PRESENT;
    const item = this.hand.current;
    const before = item.labels;
    item.labels = [...before.filter((label) => label.class !== one.id), { class: one.id, state, source: "click" }];
    const keepHere = stay || this.stay || this.unsure;
    this.decide(item, { action: "label", class: one.id, state }, before);
    if (this.unsure) this.toggleUnsure();
    if (keepHere) this.showLabels();
    else this.hand.advance();
  }

  skip() {
    const item = this.hand.current;
    if (!item) return;
    // With a label on it the image is not left open: going on is all that is meant.
    if (item.labels.length === 0) this.decide(item, { action: "skip" }, item.labels);
    this.hand.advance();
  }

  done() {
    if (!this.canDecide()) return;
    const item = this.hand.current;
    const before = item.labels;
    const answered = new Set(before.map((label) => label.class));
    const rest = this.classes.filter((one) => !answered.has(one.id));
    item.labels = [...before, ...rest.map((one) => ({ class: one.id, state: -1, source: "done" }))];
    this.decide(item, { action: "done", source: "done" }, before);
    this.hand.advance();
  }

  /** @param {any} item @param {object} decision @param {any[]} before the image's labels until now */
  decide(item, decision, before) {
    const first = before.length === 0 && item.labels.length > 0;
    this.hand.count(first ? 1 : 0, item.labels.length > 0 ? 1 : 0);
    const uuid = this.outbox.add({ source: "click", ...decision, image: item.id, milliseconds: this.hand.looked });
    this.history.push({ uuid, image: item.id, item, before });
    if (this.history.length > 500) this.history.shift();
  }

  async undo() {
    const last = this.history.pop();
    if (!last) {
      this.say("Nothing left to undo.");
      return;
    }
    this.outbox.add({ action: "undo", undoes: last.uuid, source: "click" });
    if (last.item) {
      this.hand.count(last.before.length === 0 && last.item.labels.length > 0 ? -1 : 0, last.item.labels.length ? -1 : 0);
      last.item.labels = last.before;
    } else last.item = await this.fetchItem(last.image);
    if (!last.item) return;
    this.hand.bringBack(last.item);
    this.showLabels();
  }

  toggleUnsure() {
    this.unsure = !this.unsure;
    this.unsureButton.setAttribute("aria-pressed", String(this.unsure));
    this.list.classList.toggle("unsure", this.unsure);
  }

  toggleStay() {
    this.stay = !this.stay;
    this.stayButton.setAttribute("aria-pressed", String(this.stay));
  }

  /** A key is about the picture that is on screen; while there is none it is about nothing. */
  canDecide() {
    if (this.hand.ready) return true;
    if (this.hand.current) this.say("The picture is still on its way.");
    return false;
  }

  /** After a reload: what this person can still undo. */
  async loadRecent() {
    await this.outbox.flush();
    const answer = await this.api.post("/api/recent", {}).catch(() => ({ decisions: [] }));
    const known = new Set(this.history.map((entry) => entry.uuid));
    const older = answer.decisions.filter((entry) => !known.has(entry.uuid));
    this.history.unshift(...older.map((entry) => ({ uuid: entry.uuid, image: entry.image, item: null, before: [] })));
  }

  /** The image as it is once what waits has been saved. @param {number} id */
  async fetchItem(id) {
    await this.outbox.flush();
    const answer = await this.api.post("/api/items", { images: [id] }).catch(() => ({ images: [] }));
    return answer.images[0] ?? null;
  }

  // What the person sees

  show() {
    const item = this.hand?.current;
    if (!item) {
      this.stage.replaceChildren(el("p", { class: "empty" }, this.hand?.news.empty || "One moment..."));
      this.caption.replaceChildren();
    } else if (item.broken) {
      const text = `${item.name} cannot be shown: ${item.broken} Press Space to go on.`;
      this.stage.replaceChildren(el("p", { class: "empty" }, text));
    } else if (item.loaded) {
      this.stage.replaceChildren(item.picture);
      this.caption.replaceChildren(item.name);
    } else {
      this.stage.replaceChildren(el("p", { class: "empty" }, "Loading the picture..."));
    }
    this.showLabels();
  }

  showLabels() {
    const labels = this.hand?.current?.labels ?? [];
    const states = new Map(labels.map((label) => [label.class, label.state]));
    // Only what changes: there may be hundreds of buttons, and the next picture waits for them.
    for (const id of new Set([...this.marked.keys(), ...states.keys()])) {
      const state = states.get(id);
      const button = this.buttons.get(id);
      if (!button || state === this.marked.get(id)) continue;
      button.dataset.state = state == null ? "" : STATE_WORDS[state];
      button.setAttribute("aria-pressed", String(state === PRESENT));
    }
    this.marked = states;
    const shown = labels.filter((label) => label.source !== "done");
    this.chips.replaceChildren(
      ...shown.map((label) =>
        el("span", { class: "chip", "data-state": STATE_WORDS[label.state] },
          `${this.names.get(label.class) ?? "?"}${label.state === PRESENT ? "" : ` (${STATE_WORDS[label.state]})`}`)),
    );
  }

  showNews() {
    if (!this.hand.current) this.show();
    this.showFoot();
  }

  showFoot() {
    if (!this.hand) return;
    // The number is right at once; drawing it can wait until the next picture is there.
    this.foot.firstElementChild?.setAttribute("data-waiting", String(this.outbox.waiting.size));
    this.drawFoot();
  }

  /** @param {string} text */
  say(text) {
    this.caption.replaceChildren(capital(text));
  }
}

/** How well a name fits what was typed: 0 begins with it, 1 a word does, 2 contains it, 3 has its letters in order. */
function fit(/** @type {string} */ name, /** @type {string} */ typed) {
  if (!typed || name.startsWith(typed)) return 0;
  if (name.split(/[\s_-]+/).some((word) => word.startsWith(typed))) return 1;
  if (name.includes(typed)) return 2;
  let at = 0;
  for (const letter of typed) {
    at = name.indexOf(letter, at) + 1;
    if (at === 0) return Infinity;
  }
  return 3;
}
