// @ts-check
/**
 * A dialog in which one thing is found among many: type a part of its name, arrows, Enter. With nothing typed no row is
 * selected, and Enter closes the dialog.
 */

import { el, kbd } from "./dom.js";

/**
 * @template T
 */
export class Chooser {
  /**
   * @param {{title: string, placeholder: string, search: (typed: string) => {rows: T[], note: string} | Promise<{rows: T[], note: string}>,
   *          draw: (row: T) => (Node | string)[], onTake: (row: T) => void}} options
   *   search   what fits, the best first, and a sentence below it; it may take a while
   *   draw     what a row shows
   */
  constructor({ title, placeholder, search, draw, onTake }) {
    this.search = search;
    this.draw = draw;
    this.onTake = onTake;
    /** @type {T[]} */
    this.rows = [];
    /** The selected row; -1 for none. */
    this.at = -1;
    /** What the rows are for, and whether Enter was pressed before they came. @type {string | null} */
    this.shown = null;
    this.taking = false;
    this.searching = false;
    this.field = el("input", {
      type: "search", dir: "auto", placeholder, "aria-label": title, autocomplete: "off", spellcheck: "false", role: "combobox", "aria-expanded": "true",
      "aria-autocomplete": "list", "aria-controls": "chooser-rows", oninput: () => this.#search(),
    });
    this.list = el("div", { class: "rows", role: "listbox", id: "chooser-rows", "aria-label": title });
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    this.list.addEventListener("click", (event) => this.#take([...this.list.children].indexOf(/** @type {Element} */ (event.target).closest("[role=option]"))));
    this.note = el("p", { class: "quiet", role: "status" });
    this.dialog = el("dialog", { class: "chooser", "aria-label": title },
      el("div", { class: "find" }, this.field,
        el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.close() }, "Close", kbd("Esc"))),
      this.list, this.note);
  }

  get isOpen() {
    return this.dialog.open;
  }

  /** @param {string} [typed] what has been typed already */
  open(typed = "") {
    if (!this.dialog.open) {
      this.shown = null;
      this.taking = false;
      this.field.value = typed;
      this.list.replaceChildren();
      this.dialog.showModal();
      this.#search();
    }
    this.field.focus();
    if (!typed) this.field.select();
  }

  close() {
    this.dialog.close();
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} false: the field's own */
  key(key, event) {
    if (key === "Escape") this.close();
    else if (key === "ArrowDown") this.#select(this.at + 1);
    else if (key === "ArrowUp") this.#select(Math.max(this.at, 0) - 1);
    else if (key === "Enter" && event.composedPath()[0] === this.field) event.repeat || this.#enter();
    else return false;
    return true;
  }

  /** Of several searches at once, the last one counts: the next begins when the one before is done. */
  async #search() {
    this.taking = false;
    if (this.searching) return;
    this.searching = true;
    try {
      while (this.isOpen && this.shown !== this.field.value) {
        const typed = this.field.value;
        const { rows, note } = await this.search(typed);
        this.shown = typed;
        this.#draw(rows, note);
      }
    } finally {
      this.searching = false;
    }
    if (this.taking && this.isOpen) this.#enter();
  }

  /** @param {T[]} rows @param {string} note */
  #draw(rows, note) {
    this.rows = rows;
    this.list.replaceChildren(...rows.map((row, place) =>
      el("div", { class: "option", role: "option", id: `chooser-${place}`, "aria-selected": "false" }, ...this.draw(row))));
    this.list.scrollTop = 0;
    this.note.textContent = note;
    this.at = -1;
    if (this.shown.trim()) this.#select(0);
    else this.field.removeAttribute("aria-activedescendant");
  }

  /** @param {number} at */
  #select(at) {
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    const count = this.rows.length;
    this.at = count ? (at + count) % count : -1;
    const row = this.list.children[this.at];
    row?.setAttribute("aria-selected", "true");
    row?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", row ? row.id : "");
  }

  /** Take the selected row; if what fits is still on its way, its first. */
  #enter() {
    if (this.shown !== this.field.value) this.taking = true;
    else if (this.at < 0 && !this.shown.trim()) this.close();
    else this.#take(this.at);
  }

  /** @param {number} at */
  #take(at) {
    const row = this.rows[at];
    if (!row) return;
    this.close();
    this.onTake(row);
  }
}
