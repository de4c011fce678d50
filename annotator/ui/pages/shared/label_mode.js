// @ts-check
/**
 * "One label" or "All labels": whether the key of a class labels the image and goes on, or marks it, and Enter goes on.
 * The server keeps the choice for this person and project (store/labels/answer_mode.py), so both pages that have the switch
 * begin with it. A page that is open follows its own switch only.
 */

import { el, kbd } from "./dom.js";

export const LABEL_MODE_KEY = "F4";
/** The row about it in the help of a page. @type {[string, string]} */
export const LABEL_MODE_ROW = [LABEL_MODE_KEY, "“One label” or “All labels” (keys mark, Enter goes on)"];

/** @type {["one" | "all", string, string][]} */
const MODE_CHOICES = [
  ["one", "One label", "A class labels the image, and the next image appears"],
  ["all", "All labels", "Classes are marked and unmarked; Enter goes on"],
];

export class LabelMode {
  /**
   * @param {import("./session.js").Session} session
   * @param {{onChange?: () => void}} [options]
   */
  constructor(session, { onChange = () => {} } = {}) {
    this.session = session;
    this.onChange = onChange;
    /** @type {"one" | "all"} */
    this.way = session.data.mode === "all" ? "all" : "one";
    this.fixed = false;
    this.saving = Promise.resolve();
    this.buttons = MODE_CHOICES.map(([way, words, title]) => ({
      way,
      button: el("button", { type: "button", title, "data-way": way, "aria-keyshortcuts": LABEL_MODE_KEY, onclick: () => this.choose(way) }, words),
    }));
    this.note = el("p", { class: "note", hidden: true }, "This task asks for every class.");
    this.element = el("div", { class: "modes", role: "group", "aria-label": "Labels an image" },
      ...this.buttons.map(({ button }) => button), kbd(LABEL_MODE_KEY));
    this.#draw();
  }

  /** Whether a label completes what is on screen. */
  get goesOn() {
    return !this.fixed && this.way === "one";
  }

  toggle() {
    this.choose(this.way === "one" ? "all" : "one");
  }

  /** @param {"one" | "all"} way */
  choose(way) {
    if (this.fixed || way === this.way) return;
    this.way = way;
    this.#draw();
    this.onChange();
    this.saving = this.saving.then(() => this.#save(way)); // in the order of the presses
  }

  /** What is on screen asks for every class, so that the choice waits. @param {boolean} fixed */
  setFixed(fixed) {
    if (fixed === this.fixed) return;
    this.fixed = fixed;
    this.#draw();
  }

  /** @param {"one" | "all"} way */
  async #save(way) {
    try {
      await this.session.api.post("/api/answering", { mode: way });
    } catch (error) {
      if (error.status === 401) this.session.renew();
      this.session.showMessage(`The next visit begins as this one did: ${error.message}.`, true);
    }
  }

  #draw() {
    this.note.hidden = !this.fixed;
    for (const { way, button } of this.buttons) {
      button.setAttribute("aria-pressed", String(this.fixed ? way === "all" : way === this.way));
      button.disabled = this.fixed;
    }
  }
}
