// @ts-check
/** A class is present, absent, unsure or unknown: four buttons, which say what it is on the image on screen. */

import { STATE_WORDS, el, formatCount } from "../shared/dom.js";
import { ABSENT } from "../shared/states.js";

/** @type {[number | null, string][]} */
const STATE_CHOICES = [[1, "Present"], [-1, "Absent"], [0, "Unsure"], [null, "Unanswered"]];

export class StateButtons {
  /** @param {(id: number, state: number | null) => void} onChoose told the class and its state; null: unknown */
  constructor(onChoose) {
    this.id = 0;
    /** @type {Map<number, number>} */
    this.states = new Map();
    this.buttons = STATE_CHOICES.map(([state, words]) => ({
      state,
      button: el("button", { type: "button", "data-set": words.toLowerCase(), onclick: () => onChoose(this.id, state) }, words),
    }));
    // The focus stays where it is: in the finder, whose list would close.
    this.element = el("div", { class: "states", role: "group", "aria-label": "On this image", onpointerdown: (/** @type {Event} */ event) => event.preventDefault() },
      ...this.buttons.map(({ button }) => button));
  }

  /** @param {number} id of the class that the buttons are about */
  show(id) {
    this.id = id;
    this.#draw();
  }

  /** @param {Map<number, number>} states class -> state of the image on screen */
  mark(states) {
    this.states = states;
    this.#draw();
  }

  #draw() {
    const shown = this.states.get(this.id) ?? null;
    for (const { state, button } of this.buttons) button.setAttribute("aria-pressed", String(state === shown));
  }
}

/**
 * "2 of 3 classes answered: 1 present, 1 absent"; "empty" when all are absent; "" when none is answered.
 * @param {any[]} labels @param {number} classes @param {Map<number, number>} implied
 */
export function summarizeStates(labels, classes, implied) {
  if (!labels.length) return "";
  const states = [...labels.map((label) => label.state), ...implied.values()];
  if (states.length >= classes && states.every((state) => state === ABSENT)) return `empty: ${formatCount(classes, "class", "classes")} absent`;
  const count = (/** @type {number} */ state) => labels.filter((label) => label.state === state).length;
  const counts = [1, -1, 0].map((state) => [count(state), STATE_WORDS[state]]).filter(([number]) => number);
  return `${labels.length} of ${formatCount(classes, "class", "classes")} answered: ${counts.map((part) => part.join(" ")).join(", ")}${implied.size ? ` · ${implied.size} implied` : ""}`;
}
