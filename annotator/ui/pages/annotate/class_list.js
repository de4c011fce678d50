// @ts-check
/**
 * The classes as buttons, in the project's order and under its headings, or as their relations order them; with many of
 * them the likeliest on this image stand above. A new picture touches only the buttons that were marked or are to be. How high a button is follows from
 * the room there is and the number of rows (annotate.css), so that all are seen at once where that is possible.
 */

import { arrangeClasses } from "./class_order.js";
import { buildSwatch } from "../shared/class_search.js";
import { STATE_WORDS, el, formatProbability, kbd } from "../shared/dom.js";

const MAX_LARGE_BUTTONS = 14; // up to this number two columns of large buttons have room
const AT_A_GLANCE = 35; // up to this number of classes each has a key and the likeliest are not listed apart
const MAX_LIKELY_CLASSES = 8;
const WORTH_SHOWING = 0.02;
const BUTTONS_PER_CHUNK = 40; // buttons that the browser lays out together, or not at all
const NO_MODEL = 255;

/** @typedef {import("../shared/session.js").Class} Class */

export class ClassList {
  /** @param {(class_: Class, stay: boolean, alt: boolean) => void} onChoose told what was held with the click */
  constructor(onChoose) {
    this.onChoose = onChoose;
    /** @type {Class[]} */
    this.classes = [];
    /** @type {Map<number, Class>} */
    this.byId = new Map();
    /** @type {Map<string, Class>} */
    this.byKey = new Map();
    /** @type {Map<number, HTMLButtonElement>} */
    this.buttons = new Map();
    /** What the buttons show. @type {Map<number, number>} */
    this.marked = new Map();
    /** The probabilities of those of them that are guesses. @type {Map<number, number>} */
    this.guesses = new Map();
    /** What classes without an answer are implied to be. @type {Map<number, number>} */
    this.implied = new Map();
    this.list = el("div", { class: "classes", role: "group", "aria-label": "Classes" });
    this.near = el("div", { class: "near", role: "group", "aria-label": "Likely on this image" });
    this.likelyPart = el("section", { class: "likely", hidden: true }, el("h3", {}, "Likely here"), this.near);
    for (const part of [this.list, this.near]) {
      part.addEventListener("click", (event) => {
        const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-class]"));
        const class_ = button && this.byId.get(Number(button.dataset.class));
        if (class_) this.onChoose(class_, event.shiftKey, event.altKey);
      });
    }
  }

  /** @param {Class[]} classes @param {import("../shared/relations.js").Relations} relations */
  setClasses(classes, relations) {
    this.classes = classes;
    this.byId = new Map(classes.map((class_) => [class_.id, class_]));
    this.byKey = new Map(classes.filter((class_) => class_.key).map((class_) => [class_.key, class_]));
    this.marked = this.guesses = this.implied = new Map();
    this.buttons = new Map(classes.map((class_) => [class_.id, buildClassButton(class_, class_.key ? [kbd(class_.key)] : [])]));
    const { sections, depths } = arrangeClasses(classes, relations);
    for (const [id, depth] of depths) this.buttons.get(id)?.style.setProperty("--depth", String(depth));
    this.list.replaceChildren(el("div", { class: "all" }, ...sections.flatMap((section) => this.#chunks(section))));
    const headings = sections.filter(({ heading }) => heading).length;
    this.list.classList.toggle("many", classes.length > AT_A_GLANCE);
    this.list.classList.toggle("few", classes.length <= MAX_LARGE_BUTTONS);
    this.list.classList.toggle("headed", headings > 0 || depths.size > 0);
    for (const columns of [2, 3]) {
      this.list.style.setProperty(`--rows${columns}`, String(Math.ceil((classes.length + headings) / columns) + Number(headings > 0)));
    }
    this.likelyPart.hidden = true;
  }

  /**
   * @param {Map<number, number>} states class -> state of the image on screen
   * @param {Map<number, number>} [guesses] those of them that nobody has said: class -> the model's probability
   * @param {Map<number, number>} [implied] classes that are not among them, and what they are implied to be
   */
  mark(states, guesses = new Map(), implied = new Map()) {
    if (implied.size || this.implied.size) this.#markImplied(states, implied);
    for (const id of this.marked.keys()) if (!states.has(id) && !implied.has(id)) this.#set(this.buttons.get(id), undefined);
    for (const [id, state] of states) {
      if (this.marked.get(id) !== state || this.guesses.get(id) !== guesses.get(id)) this.#set(this.buttons.get(id), state, guesses.get(id));
    }
    this.marked = states;
    this.guesses = guesses;
  }

  /** @param {Map<number, number>} states @param {Map<number, number>} implied */
  #markImplied(states, implied) {
    for (const id of this.implied.keys()) {
      const button = this.buttons.get(id);
      if (!button || implied.has(id)) continue;
      delete button.dataset.implied;
      this.#set(button, states.get(id));
    }
    for (const [id, state] of implied) {
      const button = this.buttons.get(id);
      if (!button) continue;
      this.#set(button, state);
      button.dataset.implied = "";
      button.setAttribute("aria-pressed", "mixed");
      button.ariaDescription = `${STATE_WORDS[state]}, implied by your answers`;
    }
    this.implied = implied;
  }

  /** The next class is marked unsure, or present again. @param {boolean} on */
  unsure(on) {
    this.list.classList.toggle("unsure", on);
    this.near.classList.toggle("unsure", on);
  }

  /** Remove the likely classes of the previous picture. */
  forgetLikely() {
    if (this.near.firstChild) this.near.replaceChildren();
  }

  /** The likeliest classes of this image, where there are more classes than one sees at a glance. @param {Map<number, number>} likely */
  showLikely(likely) {
    if (this.classes.length <= AT_A_GLANCE) return;
    this.likelyPart.hidden = likely.size === 0;
    const best = [...likely]
      .filter(([, share]) => share >= WORTH_SHOWING)
      .sort((a, b) => b[1] - a[1])
      .slice(0, MAX_LIKELY_CLASSES);
    this.near.replaceChildren(
      ...best.map(([id, share]) => {
        const button = buildClassButton(/** @type {Class} */ (this.byId.get(id)), [el("span", { class: "percent" }, formatProbability(share))]);
        this.#set(button, this.marked.get(id), this.guesses.get(id));
        return button;
      }),
    );
  }

  /** The buttons of a section, so many together as the browser lays out at once. @param {import("./class_order.js").Section} section */
  #chunks({ heading, group, tree, classes }) {
    const kind = ["chunk", ...(group ? ["group"] : []), ...(tree ? ["tree"] : [])].join(" ");
    const buttons = classes.map(({ id }) => /** @type {HTMLButtonElement} */ (this.buttons.get(id)));
    return Array.from({ length: Math.ceil(buttons.length / BUTTONS_PER_CHUNK) }, (_, index) =>
      el("div", { class: kind, ...(heading ? { role: "group", "aria-label": heading } : {}) },
        ...(heading && index === 0 ? [el("div", { class: "heading", dir: "auto", "aria-hidden": "true" }, heading)] : []),
        ...buttons.slice(index * BUTTONS_PER_CHUNK, (index + 1) * BUTTONS_PER_CHUNK)));
  }

  /** @param {HTMLButtonElement | undefined} button @param {number | undefined} state @param {number} [guess] the probability, where nobody has said it */
  #set(button, state, guess) {
    if (!button) return;
    if (state == null) delete button.dataset.state;
    else button.dataset.state = guess == null ? STATE_WORDS[state] : "guessed";
    button.querySelector(".guess")?.remove();
    if (guess != null && !button.querySelector(".percent")) {
      button.querySelector(".name")?.after(el("span", { class: "percent guess" }, formatProbability(guess)));
    }
    button.setAttribute("aria-pressed", guess == null ? String(state === 1) : "mixed");
    button.ariaDescription = guess == null ? STATE_WORDS[state] ?? "unanswered" : `guessed ${STATE_WORDS[state]}, ${formatProbability(guess)}`;
  }
}

/**
 * The model's probability of each class on an image; empty before the first run and for an item from before a change of
 * the classes, and without the classes that have no model yet.
 * @param {any} item @param {{classes: Class[], data: {class_version: number}}} project @returns {Map<number, number>}
 */
export function decodeLikelihoods(item, { classes: all, data }) {
  if (item?.class_version !== data.class_version) return new Map();
  const classes = [...all].sort((a, b) => a.id - b.id); // as the server counts them
  const bytes = atob(item?.likely ?? "");
  /** @type {[number, number][]} */
  const known = [];
  for (let index = 0; index < Math.min(bytes.length, classes.length); index += 1) {
    const byte = bytes.charCodeAt(index);
    if (byte !== NO_MODEL) known.push([classes[index].id, byte / 254]);
  }
  return new Map(known);
}

/** @param {Class} class_ @param {Node[]} more */
function buildClassButton(class_, more) {
  return el(
    "button",
    { type: "button", class: "class", "data-class": class_.id, "aria-keyshortcuts": class_.key || null, "aria-pressed": "false" },
    ...buildSwatch(class_),
    el("span", { class: "name", dir: "auto" }, class_.name),
    ...more,
  );
}
