// @ts-check
/**
 * The field that finds a class among any number: as one types, the names that fit, the likeliest on this image first;
 * with nothing typed, all by how likely they are here. Enter takes the chosen row: the first one once something is
 * typed, none in an empty field until an arrow is pressed. The last line of the list says what Enter does. A search
 * changes no label of the image.
 */

import { STATE_WORDS, chance, el, kbd } from "../shared/dom.js";
import { fit } from "../shared/fit.js";

const MOST = 40; // rows; more are found by typing more

/** @typedef {import("../shared/session.js").Class} Class */

export class Finder {
  /**
   * @param {{likely: () => Map<number, number>, states: () => Map<number, number>,
   *          meaning: (class_: Class) => string, onTake: (class_: Class, stay: boolean) => void, onNothing: () => void,
   *          onPoint: (class_: Class | null, row: HTMLElement | null) => void}} options
   *   likely     probability of each class on this image, as far as there is one
   *   states     what is known of this image: class -> state
   *   meaning    what taking this class does, as the end of a sentence that begins with "Enter"
   *   onNothing  Enter closed the finder without a class
   *   onPoint    which row is chosen at the moment
   */
  constructor({ likely, states, meaning, onTake, onNothing, onPoint }) {
    this.likely = likely;
    this.states = states;
    this.meaning = meaning;
    this.onTake = onTake;
    this.onNothing = onNothing;
    this.onPoint = onPoint;
    /** @type {{class_: Class, name: string}[]} */
    this.names = [];
    /** @type {Class[]} */
    this.matches = [];
    /** The chosen row; -1 for none. */
    this.at = -1;
    this.field = el("input", {
      type: "text", role: "combobox", placeholder: "Find a class", "aria-label": "Find a class", "aria-keyshortcuts": "/ Control+K",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "found", autocomplete: "off", autocapitalize: "off",
      spellcheck: "false", enterkeyhint: "done", oninput: () => this.#search(), onfocus: () => this.#open(), onblur: () => this.#shut(),
    });
    this.list = el("div", { class: "found", id: "found", role: "listbox", "aria-label": "Matching classes", hidden: true });
    this.enter = el("p", { class: "note enter" });
    this.count = el("span", { class: "sr-only", role: "status" });
    // The field keeps the focus while a row is clicked, else the list would be gone before the click is done.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.#click(event));
    this.element = el("div", { class: "finder" }, this.field, kbd("/"), this.list, this.count);
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    this.names = classes.map((class_) => ({ class_, name: class_.name.toLowerCase() }));
    if (this.open) this.#search();
  }

  get open() {
    return !this.list.hidden;
  }

  /** The class that Enter would take, and its row. @returns {[Class | null, HTMLElement | null]} */
  get chosen() {
    return [this.matches[this.at] ?? null, /** @type {HTMLElement} */ (this.list.children[this.at]) ?? null];
  }

  /** Ready to type, with nothing typed. */
  focus() {
    this.field.value = "";
    this.field.focus();
  }

  close() {
    this.field.value = "";
    this.field.blur();
    this.#shut();
  }

  /** @param {KeyboardEvent} event a key while the field has the focus @returns {boolean} false: the field's own */
  key(event) {
    const act = {
      Escape: () => this.close(),
      Enter: () => !event.repeat && this.#enter(event.shiftKey),
      ArrowDown: () => this.#select(this.at + 1),
      ArrowUp: () => this.#select(Math.max(this.at, 0) - 1),
      // The key that opens the finder; whoever presses it again wants to type a name.
      "/": this.field.value ? null : () => {},
    }[event.key];
    if (!act) return false;
    act();
    return true;
  }

  #open() {
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.#search();
  }

  #shut() {
    if (!this.open) return;
    this.list.hidden = true;
    this.field.value = "";
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
    this.onPoint(null, null);
  }

  #search() {
    const typed = this.field.value.trim().toLowerCase();
    const likely = this.likely();
    const states = this.states();
    const ranked = rank(this.names, typed, likely, states);
    this.matches = ranked.slice(0, MOST);
    const rows = this.matches.map((class_, index) => row(class_, index, likely.get(class_.id), states.get(class_.id)));
    const more = ranked.length - rows.length;
    const note = ranked.length === 0 ? "No matching class. New classes are added on the Settings page." : more > 0 ? `${more.toLocaleString("en")} more: type to find them.` : "";
    this.list.replaceChildren(...rows, ...(note ? [el("p", { class: "note" }, note)] : []), this.enter);
    this.list.scrollTop = 0;
    this.count.replaceChildren(typed ? `${ranked.length} found` : "");
    this.at = -1;
    if (typed) this.#select(0);
    else this.#unselect();
  }

  /** @param {number} index */
  #select(index) {
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    if (!this.matches.length) {
      this.#unselect();
      return;
    }
    this.at = (index + this.matches.length) % this.matches.length;
    const chosen = /** @type {HTMLElement} */ (this.list.children[this.at]);
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", chosen.id);
    this.enter.textContent = `Enter ${this.meaning(this.matches[this.at])}`;
    this.onPoint(this.matches[this.at], chosen);
  }

  #unselect() {
    this.field.removeAttribute("aria-activedescendant");
    this.enter.textContent = this.field.value.trim() ? "" : "Enter closes the finder";
    this.onPoint(null, null);
  }

  /** @param {boolean} stay */
  #enter(stay) {
    if (this.matches[this.at]) this.#take(this.matches[this.at], stay);
    else if (!this.field.value.trim()) {
      this.close();
      this.onNothing();
    }
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const chosen = /** @type {Element} */ (event.target).closest("[role=option]");
    if (chosen) this.#take(this.matches[[...this.list.children].indexOf(chosen)], event.shiftKey);
  }

  /** @param {Class | undefined} class_ @param {boolean} stay */
  #take(class_, stay) {
    if (!class_) return;
    if (!stay) this.close();
    this.onTake(class_, stay);
    if (!stay) return;
    this.field.value = "";
    this.#search();
  }
}

/**
 * The classes that fit what was typed, best first; equally good ones by their probability, then in the project's order.
 * With nothing typed what is answered already comes last.
 * @param {{class_: Class, name: string}[]} names @param {string} typed lower case
 * @param {Map<number, number>} likely @param {Map<number, number>} states
 */
function rank(names, typed, likely, states) {
  return names
    .map(({ class_, name }, index) => ({
      class_, index, fit: typed ? fit(name, typed) : Number(states.has(class_.id)), likely: likely.get(class_.id) ?? -1,
    }))
    .filter((entry) => entry.fit < Infinity)
    .sort((a, b) => a.fit - b.fit || b.likely - a.likely || a.index - b.index)
    .map((entry) => entry.class_);
}

/** @param {Class} class_ @param {number} index @param {number | undefined} likely @param {number | undefined} state */
function row(class_, index, likely, state) {
  const props = { class: "option", role: "option", id: `found-${index}`, "aria-selected": "false", "data-class": class_.id };
  const node = el("div", props, el("span", { class: "name" }, class_.name));
  if (state != null) node.append(el("span", { class: "known", "data-state": STATE_WORDS[state] }, STATE_WORDS[state]));
  if (likely != null) node.append(el("span", { class: "percent" }, chance(likely)));
  if (class_.key) node.append(kbd(class_.key));
  return node;
}
