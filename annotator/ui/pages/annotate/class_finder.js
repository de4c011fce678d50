// @ts-check
/**
 * The field that finds a class among any number: as one types, the names that fit, the likeliest on this image first;
 * with nothing typed, all by how likely they are here. Enter takes the chosen row: the first one once something is
 * typed, none in an empty field until an arrow is pressed. The last line of the list says what Enter does. A search
 * changes no label of the image. Where the project allows it, the last row adds a class of the name that was typed; it is
 * taken only after an arrow or a click, so that a slip adds none. A list of names has two such rows: each name a class, or
 * one class of it all.
 */

import { buildSwatch, formatFullName, scoreClassMatch } from "../shared/class_search.js";
import { STATE_WORDS, el, formatProbability, kbd } from "../shared/dom.js";

const MAX_ROWS = 40; // rows; more are found by typing more
const PATH_MATCH_SCORE = 9; // worse than any fit of a name (name_match.js)

/**
 * @typedef {import("../shared/session.js").Class} Class
 * @typedef {{class_: Class, synonym: string}} Match  synonym: by which it was found, "" for its name
 */

export class ClassFinder {
  /**
   * @param {{likely: () => Map<number, number>, states: () => Map<number, number>,
   *          meaning: (class_: Class) => string, onTake: (class_: Class, stay: boolean) => void, onNothing: () => void,
   *          onPoint: (class_: Class | null, row: HTMLElement | null) => void,
   *          onAdd?: (name: string, sure: boolean) => Promise<{class_?: Class, surprises?: string[]}>}} options
   *   likely     probability of each class on this image, as far as there is one
   *   states     what is known of this image: class -> state
   *   meaning    what taking this class does, as the end of a sentence that begins with "Enter"
   *   onNothing  Enter closed the finder without a class
   *   onPoint    which row is chosen at the moment
   *   onAdd      adds a class of this name, or says what may be a surprise about it; without it, none is added here
   */
  constructor({ likely, states, meaning, onTake, onNothing, onPoint, onAdd }) {
    this.likely = likely;
    this.states = states;
    this.meaning = meaning;
    this.onTake = onTake;
    this.onNothing = onNothing;
    this.onPoint = onPoint;
    this.onAdd = onAdd;
    /** @type {Class[]} */
    this.classes = [];
    /** @type {Match[]} */
    this.matches = [];
    /** The rows that add classes, with their names; none where none is offered. @type {{row: HTMLElement, names: string[]}[]} */
    this.adding = [];
    /** The row about which it was said what may be a surprise: it is taken as known by the next Enter. @type {HTMLElement | null} */
    this.warned = null;
    /** Whether classes are being added. */
    this.busy = false;
    /** The chosen row; -1 for none. */
    this.at = -1;
    this.field = el("input", {
      type: "text", dir: "auto", role: "combobox", placeholder: "Find a class", "aria-label": "Find a class", "aria-keyshortcuts": "/ Control+K",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "found", autocomplete: "off", autocapitalize: "off",
      spellcheck: "false", enterkeyhint: "done", oninput: () => this.#search(), onfocus: () => this.#open(), onblur: () => this.#shut(),
    });
    this.list = el("div", { class: "found", id: "found", role: "listbox", "aria-label": "Matching classes", hidden: true });
    this.note = el("p", { class: "note" });
    this.enter = el("p", { class: "note enter" });
    this.count = el("span", { class: "sr-only", role: "status" });
    // The field keeps the focus while a row is clicked, else the list would be gone before the click is done.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.#click(event));
    this.element = el("div", { class: "finder" }, el("div", { class: "field" }, this.field, kbd("/")), this.list, this.count);
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    this.classes = classes;
    if (this.open && !this.busy) this.#search();
  }

  get open() {
    return !this.list.hidden;
  }

  /** The class that Enter would take, and its row. @returns {[Class | null, HTMLElement | null]} */
  get chosen() {
    return [this.matches[this.at]?.class_ ?? null, /** @type {HTMLElement} */ (this.list.children[this.at]) ?? null];
  }

  /** Ready to type. @param {string} [typed] what has been typed already */
  focus(typed = "") {
    this.field.value = typed;
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
    const ranked = rankClasses(this.classes, typed, likely, states);
    this.matches = ranked.slice(0, MAX_ROWS);
    const rows = this.matches.map((match, index) => buildRow(match, index, likely.get(match.class_.id), states.get(match.class_.id)));
    const more = ranked.length - rows.length;
    const known = this.classes.some((class_) => [class_.name, ...class_.synonyms].some((name) => name.toLowerCase() === typed));
    this.adding = this.onAdd && typed && !known ? this.#addRows(this.field.value.trim()) : [];
    const none = `No matching class.${this.adding.length ? "" : " New classes are added on the Classes page."}`;
    const note = ranked.length === 0 ? none : more > 0 ? `${more.toLocaleString("en")} more: type to find them.` : "";
    this.note.replaceChildren(note);
    this.warned = null;
    this.list.replaceChildren(...rows, ...this.adding.map(({ row }) => row), this.note, this.enter);
    this.list.scrollTop = 0;
    this.count.replaceChildren(typed ? `${ranked.length} found` : "");
    this.at = -1;
    if (typed && ranked.length) this.#select(0);
    else this.#unselect();
  }

  /** @param {string} typed */
  #addRows(typed) {
    const parts = splitNames(typed);
    const [apart, whole] = [parts.map((name) => `“${name}”`).join(" and "), `“${typed}”`];
    const offers = parts.length > 1
      ? [{ names: parts, words: `Add ${parts.length} classes: ${apart}` }, { names: [typed], words: `Add one class named ${whole}` }]
      : [{ names: [typed], words: `Add ${whole} as a new class` }];
    return offers.map(({ names, words }, index) => {
      const props = { class: "option add", role: "option", id: `found-add-${index}`, "aria-selected": "false" };
      return { names, row: el("div", props, el("span", { class: "words" }, words)) };
    });
  }

  /** @param {number} index */
  #select(index) {
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    const rows = this.matches.length + this.adding.length;
    if (!rows) {
      this.#unselect();
      return;
    }
    this.at = (index + rows) % rows;
    const chosen = /** @type {HTMLElement} */ (this.list.children[this.at]);
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", chosen.id);
    const match = this.matches[this.at];
    this.enter.textContent = match ? `Enter ${this.meaning(match.class_)}` : `Enter adds ${this.#chosenNames > 1 ? "the classes" : "the class"} and labels the image`;
    this.onPoint(match?.class_ ?? null, match ? chosen : null);
  }

  #unselect() {
    this.field.removeAttribute("aria-activedescendant");
    this.enter.textContent = this.adding.length ? "↓ then Enter adds the class" : this.field.value.trim() ? "" : "Enter closes the finder";
    this.onPoint(null, null);
  }

  /** @param {boolean} stay */
  #enter(stay) {
    if (this.list.children[this.at]) this.#takeRow(this.at, stay);
    else if (!this.field.value.trim()) {
      this.close();
      this.onNothing();
    }
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const chosen = /** @type {Element} */ (event.target).closest("[role=option]");
    if (chosen) this.#takeRow([...this.list.children].indexOf(chosen), event.shiftKey);
  }

  /** @param {number} index @param {boolean} stay */
  #takeRow(index, stay) {
    const adding = this.adding[index - this.matches.length];
    if (adding) this.#add(adding, stay);
    else this.#take(this.matches[index]?.class_, stay);
  }

  /** How many classes the chosen row adds. */
  get #chosenNames() {
    return this.adding[this.at - this.matches.length]?.names.length ?? 0;
  }

  /**
   * Add classes of the names that were typed and label the image with them, unless the person has gone on meanwhile.
   * @param {{row: HTMLElement, names: string[]}} adding @param {boolean} stay
   */
  async #add({ row, names }, stay) {
    const typed = this.field.value;
    if (!this.onAdd || row.ariaBusy === "true") return;
    row.ariaBusy = "true";
    /** @type {Class[]} */
    const added = [];
    /** @type {string[]} */
    const surprises = [];
    const sure = this.warned === row;
    this.busy = true; // each class that comes would draw the list anew
    for (const name of names) {
      const answer = await this.onAdd(name, sure);
      if (answer.class_) added.push(answer.class_);
      else surprises.push(...(answer.surprises ?? []));
    }
    this.busy = false;
    row.ariaBusy = "false";
    if (!this.open || this.field.value !== typed) return;
    const last = added.length === names.length ? added.pop() : undefined;
    if (last) {
      for (const class_ of added) this.onTake(class_, true);
      this.#take(last, stay);
      return;
    }
    this.warned = row;
    this.note.replaceChildren(...[...new Set(surprises)].map((text) => el("span", { class: "surprise", role: "alert" }, text)));
    this.enter.textContent = `Enter adds ${names.length > 1 ? "the classes" : "the class"} all the same`;
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

/** The names in a list of them, as store/classes/name_lists.py reads one. @param {string} typed */
function splitNames(typed) {
  const parts = typed.split(/(?<!\d)[,;]|[,;](?!\d)|[，、；]/).map((part) => part.trim()).filter(Boolean);
  return [...new Set(parts)];
}

/**
 * The classes that fit what was typed, best first; equally good ones by their probability, then in the project's order.
 * With nothing typed what is answered already comes last.
 * @param {Class[]} classes @param {string} typed lower case
 * @param {Map<number, number>} likely @param {Map<number, number>} states @returns {Match[]}
 */
function rankClasses(classes, typed, likely, states) {
  return classes
    .map((class_, index) => {
      const fits = typed ? scoreClassMatch(class_, typed) : { fit: Number(states.has(class_.id)), synonym: "" };
      if (typed && fits.fit === Infinity && isOnPath(class_, typed)) fits.fit = PATH_MATCH_SCORE;
      return { class_, index, ...fits, likely: likely.get(class_.id) ?? -1 };
    })
    .filter((entry) => entry.fit < Infinity)
    .sort((a, b) => a.fit - b.fit || b.likely - a.likely || a.index - b.index);
}

/** Whether each word that was typed is in the class's name or that of what it is a kind of. @param {Class} class_ @param {string} typed lower case */
function isOnPath({ name, path }, typed) {
  const full = path ? `${path} › ${name}`.toLowerCase() : "";
  return Boolean(full) && typed.split(/[\s/›>]+/).every((word) => full.includes(word));
}

/** @param {Match} match @param {number} index @param {number | undefined} likely @param {number | undefined} state */
function buildRow({ class_, synonym }, index, likely, state) {
  const props = { class: "option", role: "option", id: `found-${index}`, "aria-selected": "false", "data-class": class_.id };
  const node = el("div", props, ...buildSwatch(class_), el("span", { class: "name", dir: "auto" }, formatFullName(class_.name, synonym)));
  if (class_.path) node.append(el("span", { class: "path", dir: "auto" }, class_.path));
  if (state != null) node.append(el("span", { class: "known", "data-state": STATE_WORDS[state] }, STATE_WORDS[state]));
  if (likely != null) node.append(el("span", { class: "percent" }, formatProbability(likely)));
  if (class_.key) node.append(kbd(class_.key));
  return node;
}
