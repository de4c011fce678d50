// @ts-check
/** The list of all keys. */

import { el, kbd } from "./dom.js";

export class HelpDialog {
  /** @param {{title: string, rows: [string | string[], string][]}[]} sections */
  constructor(sections) {
    this.dialog = /** @type {HTMLDialogElement} */ (
      el("dialog", { class: "help", "aria-label": "Keys" },
        el("h2", {}, "Keys"),
        el("div", { class: "sections" }, ...sections.map(buildSection)),
        el("form", { method: "dialog" }, el("button", { class: "main" }, "Close", kbd("Esc"))))
    );
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
}

/** @param {{title: string, rows: [string | string[], string][]}} one */
function buildSection({ title, rows }) {
  const keys = (/** @type {string | string[]} */ given) =>
    [given].flat().flatMap((key, place) => (place ? [" ", kbd(key)] : [kbd(key)]));
  return el("section", {}, el("h3", {}, title),
    el("dl", {}, ...rows.flatMap(([key, text]) => [el("dt", {}, ...keys(key)), el("dd", {}, text)])));
}
