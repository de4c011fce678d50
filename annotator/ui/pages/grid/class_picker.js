// @ts-check
/** Choosing the class of the grid: all classes by how many images probably still show it, or by a few letters. */

import { el, kbd } from "../shared/dom.js";
import { buildSwatch, formatFullName, scoreClassMatch } from "../shared/class_search.js";

const MOST_ROWS = 80; // the rest is found by typing

/**
 * @typedef {import("../shared/session.js").Class} Class
 * @typedef {{id: number, present: number, absent: number, unsure: number, unknown: number, likely: number | null}} Counts
 */

export class ClassPicker {
  /** @param {{onPick: (id: number) => void, onBest: () => void, onAudit: () => void}} options */
  constructor({ onPick, onBest, onAudit }) {
    this.onPick = onPick;
    /** @type {Class[]} */
    this.classes = [];
    /** @type {Map<number, Counts>} */
    this.counts = new Map();
    /** What fits, with the synonym by which it was found. @type {{class_: Class, synonym: string}[]} */
    this.matches = [];
    this.at = 0;
    this.input = el("input", {
      type: "search", dir: "auto", placeholder: "Type to find a class", "aria-label": "Find a class", autocomplete: "off", role: "combobox",
      "aria-expanded": "true", "aria-controls": "picker-list", oninput: () => this.#search(),
    });
    this.list = el("div", { class: "rows", role: "listbox", id: "picker-list", "aria-label": "Classes" });
    this.more = el("p", { class: "more" });
    this.dialog = el("dialog", { class: "picker", "aria-label": "Choose a class" },
      el("div", { class: "find" },
        this.input,
        el("button", { type: "button", onclick: () => this.#leave(onBest) }, "Next best class"),
        el("button", { type: "button", onclick: () => this.#leave(onAudit) }, "Audit grid"),
        el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.dialog.close() }, "Close", kbd("Esc"))),
      el("div", { class: "row titles", "aria-hidden": "true" },
        ...["Class", "Expected to find", "Present", "Absent", "Unsure", "Unanswered"].map((text) => el("span", {}, text))),
      this.list,
      this.more);
  }

  /** @param {Class[]} classes @param {number | null} current */
  open(classes, current) {
    this.classes = classes;
    this.current = current;
    this.input.value = "";
    this.#search();
    if (!this.dialog.open) this.dialog.showModal();
    this.input.focus();
  }

  /** @param {Map<number, Counts>} counts of all classes, as they are now */
  news(counts) {
    this.counts = counts;
    if (this.dialog.open) this.#rank();
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    if (key === "Escape") this.dialog.close();
    else if (key === "ArrowDown") this.#moveTo(this.at + 1);
    else if (key === "ArrowUp") this.#moveTo(this.at - 1);
    else if (key === "Enter" && !event.repeat) this.#take(this.at);
    else return false;
    return true;
  }

  #search() {
    this.at = 0;
    this.#rank();
  }

  #rank() {
    const typed = this.input.value.trim().toLowerCase();
    const likely = (/** @type {{id: number}} */ class_) => this.counts.get(class_.id)?.likely ?? -1;
    this.matches = this.classes
      .map((class_, index) => ({ class_, index, ...(typed ? scoreClassMatch(class_, typed) : { fit: 0, synonym: "" }) }))
      .filter((entry) => entry.fit < Infinity)
      .sort((a, b) => a.fit - b.fit || likely(b.class_) - likely(a.class_) || a.index - b.index);
    const most = Math.max(1, ...this.matches.map(({ class_ }) => likely(class_)));
    this.list.replaceChildren(...this.matches.slice(0, MOST_ROWS).map((match, place) => this.#row(match, place, most)));
    const over = this.matches.length - MOST_ROWS;
    this.more.replaceChildren(
      this.matches.length === 0 ? "No matching class." : over > 0 ? `${over.toLocaleString("en")} more: type to find them.` : "");
    this.#moveTo(this.at);
  }

  /** @param {{class_: Class, synonym: string}} match @param {number} place @param {number} most */
  #row({ class_, synonym }, place, most) {
    const counts = this.counts.get(class_.id);
    const number = (/** @type {number | null | undefined} */ value, /** @type {string} */ what) =>
      el("span", { class: "number" }, value == null ? "–" : Math.round(value).toLocaleString("en"), el("span", { class: "sr-only" }, ` ${what}`));
    const likely = counts?.likely ?? null;
    return el(
      "div",
      {
        class: "row", role: "option", id: `picker-${place}`, "data-class": class_.id, "aria-selected": "false",
        onclick: () => this.#take(place), onpointermove: () => place !== this.at && this.#moveTo(place, false),
      },
      el("span", { class: "name", dir: "auto" }, ...buildSwatch(class_), formatFullName(class_.name, synonym),
        ...(class_.heading ? [el("span", { class: "of" }, class_.heading)] : []),
        ...(class_.id === this.current ? [el("span", { class: "now" }, "current")] : [])),
      el("span", { class: "likely" },
        el("span", { class: "bar" }, el("span", { style: `width:${likely == null ? 0 : Math.round((100 * likely) / most)}%` })),
        number(likely, "expected to find,")),
      number(counts?.present, "present,"),
      number(counts?.absent, "absent,"),
      number(counts?.unsure, "unsure,"),
      number(counts?.unknown, "unanswered"),
    );
  }

  /** @param {number} place @param {boolean} [scroll] */
  #moveTo(place, scroll = true) {
    const rows = this.list.children;
    rows[this.at]?.setAttribute("aria-selected", "false");
    this.at = Math.min(Math.max(place, 0), Math.max(rows.length - 1, 0));
    const row = rows[this.at];
    row?.setAttribute("aria-selected", "true");
    if (scroll) row?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", row ? row.id : "");
  }

  /** @param {number} place */
  #take(place) {
    const class_ = this.matches[place]?.class_;
    if (class_) this.#leave(() => this.onPick(class_.id));
  }

  /** @param {() => void} then */
  #leave(then) {
    this.dialog.close();
    then();
  }
}
