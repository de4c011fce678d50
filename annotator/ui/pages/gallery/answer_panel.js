// @ts-check
/**
 * What is selected, and what is to be said of it: each class can be set to present, absent, unsure or unknown (no answer
 * any more), and all of them are set at once, on all selected images.
 */

import { el, formatCount, kbd, keyButton } from "../shared/dom.js";
import { scoreClassMatch } from "../shared/class_search.js";

const MOST_ROWS = 80; // the rest is found by typing
export const MOST_CELLS = 10_000; // of one batch, as in shared/requests.py

/** State, sign and word. @type {[number | null, string, string][]} */
const STATE_CHOICES = [[1, "✓", "present"], [-1, "✕", "absent"], [0, "?", "unsure"], [null, "○", "unanswered"]];

/** @typedef {import("../shared/session.js").Class} Class */

/** @param {number | null} state */
export function describeState(state) {
  return STATE_CHOICES.find(([other]) => other === state)?.[2] ?? "";
}

export class AnswerPanel {
  /**
   * @param {{onSet: (states: Map<number, number | null>) => void, onClear: () => void, onOpen: () => void, onAll: () => void,
   *          onFlag: () => void}} on
   * @param {HTMLElement} more what else is shown of the selection
   */
  constructor(on, more) {
    this.on = on;
    /** @type {Class[]} */
    this.classes = [];
    /** @type {Class[]} */
    this.matches = [];
    /** What is to be said: class -> state. @type {Map<number, number | null>} */
    this.states = new Map();
    this.count = 0;
    this.at = 0;
    this.#build(more);
    this.show(0, null);
  }

  /** @param {HTMLElement} more */
  #build(more) {
    this.title = el("h3", { role: "status" });
    this.about = el("p", { class: "about", dir: "auto" });
    this.field = el("input", {
      type: "search", dir: "auto", placeholder: "Find a class", "aria-label": "Class to set on the selected images", "aria-describedby": "panel-how",
      "aria-keyshortcuts": "c", autocomplete: "off", oninput: () => this.#search(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#control(event),
    });
    this.list = el("div", { class: "rows-of-classes", role: "group", tabindex: "0", "aria-label": "Classes" });
    this.list.addEventListener("click", (event) => this.#click(event));
    this.more = el("p", { class: "quiet" });
    this.spoken = el("span", { class: "sr-only", role: "status" });
    this.how = el("p", { class: "quiet how", id: "panel-how" }, "Enter: present; again: absent, unsure, unanswered.");
    this.setButton = el("button", { type: "button", class: "main", "aria-keyshortcuts": "Control+Enter", onclick: () => this.set() });
    this.openButton = el("button", { type: "button", "aria-keyshortcuts": "Enter", onclick: () => this.on.onOpen() }, el("span", {}, "Open"), kbd("Enter"));
    this.clearButton = el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.on.onClear() }, el("span", {}, "Clear"), kbd("Esc"));
    this.allButton = el("button", { type: "button", "aria-keyshortcuts": "Control+A", onclick: () => this.on.onAll() }, el("span", {}, "Select all"), kbd("Ctrl+A"));
    this.flagButton = keyButton("Flag", ",", () => this.on.onFlag());
    this.opener = el("button", {
      type: "button", class: "opener", "aria-controls": "panel-body", "aria-expanded": "false", onclick: () => this.unfold(!this.element.classList.contains("open")),
    }, "Set classes");
    this.body = el("div", { class: "body", id: "panel-body" },
      el("div", { class: "find" }, this.field, kbd("c")), this.list, this.more, this.how, this.setButton, this.spoken);
    this.element = el("section", { class: "panel", "aria-label": "Selected images" },
      el("div", { class: "panel-head" }, this.title, this.opener, el("div", { class: "tools" }, this.openButton, this.flagButton, this.clearButton, this.allButton)),
      this.about, more, this.body);
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    this.classes = classes;
    for (const id of this.states.keys()) if (!classes.some((class_) => class_.id === id)) this.states.delete(id);
    this.#search();
  }

  /** So many are selected. @param {number} count @param {string | null} about the one that is selected, in words */
  show(count, about) {
    this.count = count;
    this.title.textContent = count ? `${count.toLocaleString("en")} selected` : "Nothing selected";
    this.about.textContent = about ?? (count ? "" : "Click an image, drag over several, or press Space.");
    this.openButton.hidden = count !== 1;
    this.clearButton.hidden = this.flagButton.hidden = this.opener.hidden = !count;
    this.body.classList.toggle("idle", !count);
    this.#tell();
  }

  /** On small screens the classes are shown when they are wanted. @param {boolean} open */
  unfold(open) {
    this.element.classList.toggle("open", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }

  focus() {
    this.unfold(true);
    this.field.focus();
    this.field.select();
  }

  /** Nothing is to be said any more. */
  reset() {
    this.states.clear();
    this.field.value = "";
    this.unfold(false);
    this.#search();
  }

  /** Say it of all that are selected. */
  set() {
    if (!this.setButton.disabled) this.on.onSet(new Map(this.states));
  }

  /** @param {string} key @param {KeyboardEvent} event a key in the field @returns {boolean} */
  key(key, event) {
    const act = {
      ArrowDown: () => this.#moveTo(this.at + 1),
      ArrowUp: () => this.#moveTo(this.at - 1),
      Enter: () => event.repeat || this.#next(this.at),
      Escape: () => this.field.blur(),
    }[key];
    if (!act) return false;
    act();
    return true;
  }

  /** Keys with Ctrl are nobody's but the field's. @param {KeyboardEvent} event */
  #control(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
    event.preventDefault();
    this.field.blur();
    this.set();
  }

  #search() {
    const typed = this.field.value.trim().toLowerCase();
    this.matches = this.classes
      .map((class_, index) => ({ class_, index, rank: typed ? scoreClassMatch(class_, typed).fit : 0 }))
      .filter(({ rank }) => rank < Infinity)
      .sort((a, b) => a.rank - b.rank || a.index - b.index)
      .map(({ class_ }) => class_);
    const over = this.matches.length - MOST_ROWS;
    this.matches = this.matches.slice(0, MOST_ROWS);
    this.list.replaceChildren(...this.matches.map((class_) => buildRow(class_)));
    this.more.textContent = !this.matches.length ? "No matching class." : over > 0 ? `${over.toLocaleString("en")} more: type to find them.` : "";
    this.at = 0;
    this.#tell();
    this.#moveTo(0);
  }

  /** @param {number} place */
  #moveTo(place) {
    const rows = this.list.children;
    rows[this.at]?.classList.remove("at");
    this.at = Math.min(Math.max(place, 0), Math.max(rows.length - 1, 0));
    rows[this.at]?.classList.add("at");
    if (this.field.matches(":focus")) {
      rows[this.at]?.scrollIntoView({ block: "nearest" });
      this.#speak();
    }
  }

  /** The state after the one it is to have. @param {number} place */
  #next(place) {
    const class_ = this.matches[place];
    if (!class_) return;
    const states = STATE_CHOICES.map(([state]) => state);
    const at = this.states.has(class_.id) ? states.indexOf(this.states.get(class_.id) ?? null) : -1;
    this.#choose(class_.id, at === states.length - 1 ? undefined : states[at + 1]);
    this.field.select();
  }

  /** @param {Event} event */
  #click(event) {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (!button) return;
    const id = Number(button.dataset.class);
    const state = button.dataset.state === "" ? null : Number(button.dataset.state);
    this.#moveTo(this.matches.findIndex((class_) => class_.id === id));
    this.#choose(id, this.states.has(id) && this.states.get(id) === state ? undefined : state);
  }

  /** @param {number} id @param {number | null | undefined} state undefined: it stays as it is on each image */
  #choose(id, state) {
    if (state === undefined) this.states.delete(id);
    else this.states.set(id, state);
    this.#tell();
    this.#speak();
  }

  #speak() {
    const class_ = this.matches[this.at];
    const state = class_ && this.states.has(class_.id) ? describeState(this.states.get(class_.id) ?? null) : "unchanged";
    this.spoken.textContent = class_ ? `${class_.name}: ${state}` : "";
  }

  #tell() {
    for (const button of this.list.querySelectorAll("button")) {
      const id = Number(button.dataset.class);
      const state = button.dataset.state === "" ? null : Number(button.dataset.state);
      button.setAttribute("aria-pressed", String(this.states.has(id) && this.states.get(id) === state));
    }
    const cells = this.count * this.states.size;
    this.setButton.disabled = !cells || cells > MOST_CELLS;
    const words = cells > MOST_CELLS ? `At most ${MOST_CELLS.toLocaleString("en")} answers at once: choose fewer classes`
      : cells ? `Set ${formatCount(this.states.size, "class", "classes")} on ${formatCount(this.count, "image")}` : "Set classes";
    this.setButton.replaceChildren(el("span", {}, words), kbd("Ctrl+Enter"));
  }
}

/** @param {Class} class_ */
function buildRow({ id, name }) {
  return el("div", { class: "row-of-class", role: "group", "aria-label": name }, el("span", { class: "name", dir: "auto", title: name }, name),
    ...STATE_CHOICES.map(([state, sign, word]) => el("button", {
      type: "button", tabindex: "-1", "data-class": id, "data-state": state ?? "", "aria-pressed": "false", title: word, "aria-label": `${name} ${word}`,
    }, sign)));
}
