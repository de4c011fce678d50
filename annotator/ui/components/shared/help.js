// @ts-check
/** The list of all keys, and the hints that are shown on a person's first visit to a page. */

import { el, kbd } from "./dom.js";

const ENOUGH = 5; // decisions after which the hints disappear

export class Help {
  /**
   * @param {string} page @param {{title: string, rows: [string | string[], string][]}[]} sections
   * @param {string[]} hints
   */
  constructor(page, sections, hints) {
    this.seen = `annotator:hints:${page}`;
    this.decisions = 0;
    this.dialog = /** @type {HTMLDialogElement} */ (
      el("dialog", { class: "help", "aria-label": "Keys" },
        el("h2", {}, "Keys"),
        el("div", { class: "sections" }, ...sections.map(section)),
        el("form", { method: "dialog" }, el("button", { class: "main" }, "Close", kbd("Esc"))))
    );
    this.hints = el("aside", { class: "hints", "aria-label": "First steps" },
      el("ol", {}, ...hints.map((text) => el("li", {}, text))),
      el("button", { type: "button", onclick: () => this.gone() }, "Got it"));
    this.hints.hidden = remembered(this.seen);
  }

  get isOpen() {
    return this.dialog.open;
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** While the dialog is open it takes the keys that close it; all others are left to the browser. @param {string} key */
  key(key) {
    if (!["Escape", "Enter", "?", "F1", " "].includes(key)) return false;
    this.dialog.close();
    return true;
  }

  /** Another decision was given. */
  decided() {
    this.decisions += 1;
    if (this.decisions === ENOUGH) this.gone();
  }

  gone() {
    this.hints.hidden = true;
    try {
      localStorage.setItem(this.seen, "yes");
    } catch {
      // They will be shown once more: no harm.
    }
  }
}

/** @param {{title: string, rows: [string | string[], string][]}} one */
function section({ title, rows }) {
  const keys = (/** @type {string | string[]} */ given) =>
    [given].flat().flatMap((key, place) => (place ? [" ", kbd(key)] : [kbd(key)]));
  return el("section", {}, el("h3", {}, title),
    el("dl", {}, ...rows.flatMap(([key, text]) => [el("dt", {}, ...keys(key)), el("dd", {}, text)])));
}

/** @param {string} key */
function remembered(key) {
  try {
    return localStorage.getItem(key) === "yes";
  } catch {
    return false;
  }
}
