// @ts-check
/** What stands around the tiles: which class, how it fares, how the grid begins, its size, and the key that decides it. */

import { el, kbd, keyButton } from "../shared/dom.js";

/** @typedef {import("./picker.js").Counts} Counts */
/** @typedef {{id: number, name: string, description: string}} Class */

export class Surroundings {
  /**
   * @param {{sizes: number[], onPicker: () => void, onBest: () => void, onSize: (size: number) => void,
   *          onStart: (start: "yes" | "no") => void, onDecide: () => void, onLeave: () => void}} options
   */
  constructor({ sizes, onPicker, onBest, onSize, onStart, onDecide, onLeave }) {
    this.className = el("span", { class: "name" });
    this.title = el("h2", {},
      el("button", { type: "button", class: "class-name", "aria-keyshortcuts": "/ Control+K", title: "Choose a class", onclick: onPicker },
        this.className, el("span", { class: "down", "aria-hidden": "true" }, "▾"), kbd("/")));
    this.description = el("span", { class: "description" });
    this.progress = el("span", { class: "progress" });
    this.bestButton = keyButton("Next best class", ".", onBest);
    this.sizeButtons = sizes.map((size) =>
      el("button", { type: "button", "aria-pressed": "false", "aria-label": `${size} images`, onclick: () => onSize(size) }, String(size)));
    this.sizes = el("div", { class: "joined", role: "group", "aria-label": "Images in a grid", "aria-keyshortcuts": "< >" }, ...this.sizeButtons);
    this.startButtons = /** @type {("yes" | "no")[]} */ (["yes", "no"]).map((start) =>
      el("button", { type: "button", "aria-pressed": "false", "data-start": start, onclick: () => onStart(start) }));
    this.starts = el("div", { class: "joined starts", role: "group", "aria-label": "How a grid begins", "aria-keyshortcuts": ";" }, ...this.startButtons);
    this.about = el("span", { class: "about", role: "status" });
    this.sum = el("span", { class: "sum" });
    this.decideButton = el("button", { type: "button", class: "main decide", "aria-keyshortcuts": "Enter", onclick: onDecide },
      el("span", {}, "Decide"), this.sum, kbd("Enter"));
    this.chosen = el("span", {});
    this.selection = el("div", { class: "selection", hidden: true }, this.chosen,
      el("button", { type: "button", onclick: onLeave }, "Leave the selection"));
  }

  /** @param {import("../shared/session.js").Session} session @param {HTMLElement} host of the tiles @param {HTMLElement[]} dialogs */
  build(session, host, dialogs) {
    session.element.classList.add("grid-page");
    session.element.replaceChildren(
      el("div", { class: "head" },
        el("div", { class: "what" }, this.title, this.description),
        this.progress,
        session.toolbar),
      session.help.hints,
      this.selection,
      el("div", { class: "bar" }, this.starts, this.about, this.sizes, this.bestButton, this.decideButton),
      host,
      el("div", { class: "under" }, session.words, session.foot.element),
      session.help.dialog,
      ...dialogs,
    );
  }

  /** @param {import("./tiles.js").Grid} grid @param {Class | undefined} one @param {Map<number, Counts>} counts */
  show(grid, one, counts) {
    this.#name(one);
    this.showCounts(counts.get(grid.class));
    const { length } = grid.tiles;
    write(this.about, grid.share == null ? `${length} images` : `About ${Math.round(grid.share * length)} of ${length}`);
  }

  /** Nothing is on screen. @param {Class | undefined} one @param {Map<number, Counts>} counts */
  showNone(one, counts) {
    this.#name(one);
    this.showCounts(one && counts.get(one.id));
    write(this.about, "");
    write(this.sum, "");
    this.decideButton.disabled = true;
  }

  /** @param {import("./tiles.js").Tiles} view @param {string} name */
  showMarks(view, name) {
    const [yes, no, unsure] = [1, -1, 0].map((state) => view.count(state));
    write(this.sum, `${yes} yes · ${no} no${unsure ? ` · ${unsure} unsure` : ""}`);
    if (this.decideButton.disabled) this.decideButton.disabled = false;
    for (const button of this.startButtons) {
      const pressed = String(button.dataset.start === view.grid.start);
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    }
    this.#starts(name);
  }

  /** @param {Counts | undefined} counts of the class on screen */
  showCounts(counts) {
    if (!counts) return write(this.progress, "");
    const number = (/** @type {number} */ value) => Math.round(value).toLocaleString("en");
    const words = [`${number(counts.present)} present`, `${number(counts.absent)} absent`];
    if (counts.unsure) words.push(`${number(counts.unsure)} unsure`);
    words.push(`${number(counts.unknown)} unknown`);
    if (counts.likely != null) words.push(`about ${number(counts.likely)} to be found`);
    write(this.progress, words.join(" · "));
  }

  /** @param {number} size */
  setSize(size) {
    for (const button of this.sizeButtons) button.setAttribute("aria-pressed", String(Number(button.textContent) === size));
  }

  /** @param {{id: string, count: number} | null} selection */
  setSelection(selection) {
    this.selection.hidden = !selection;
    if (selection) write(this.chosen, `${selection.count.toLocaleString("en")} images selected on the map`);
  }

  /** @param {Class | undefined} one */
  #name(one) {
    write(this.className, one?.name ?? "Choosing a class");
    write(this.description, one?.description ?? "");
    if (one) this.#starts(one.name);
  }

  /** @param {string} name */
  #starts(name) {
    write(this.startButtons[0], `All are ${name}: mark the wrong ones`);
    write(this.startButtons[1], "None is: mark the right ones");
  }
}

/** @param {HTMLElement} node @param {string} text */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
