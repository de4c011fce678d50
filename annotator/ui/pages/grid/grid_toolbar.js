// @ts-check
/** What is around the tiles: the class and its counts, how the grid begins, its size, and the button that saves it. */

import { SaveBar } from "./save_bar.js";
import { el, formatCount, kbd, keyButton, setText } from "../shared/dom.js";

const NEXT_BEST_TEXT = "Next best class";
const AUDIT_GRID_TEXT = "Audit grid: random images, predictions hidden.";

/** @typedef {import("./class_picker.js").Counts} Counts */
/** @typedef {{id: number, name: string, description: string}} Class */

export class GridToolbar {
  /**
   * @param {{onPicker: () => void, onBest: () => void,
   *          onStart: (start: "yes" | "no") => void, onDecide: () => void, onLeave: () => void}} options
   */
  constructor({ onPicker, onBest, onStart, onDecide, onLeave }) {
    this.className = el("span", { class: "name", dir: "auto" });
    this.title = el("h2", {},
      el("button", { type: "button", class: "class-name", "aria-keyshortcuts": "/ Control+K", title: "Choose a class", onclick: onPicker },
        this.className, el("span", { class: "down", "aria-hidden": "true" }, "▾"), kbd("/")));
    this.description = el("span", { class: "description", dir: "auto" });
    this.progress = el("span", { class: "progress" });
    this.bestButton = keyButton(NEXT_BEST_TEXT, ".", onBest);
    this.bestText = /** @type {HTMLElement} */ (this.bestButton.firstElementChild);
    this.saveBar = new SaveBar({ onStart, onDecide });
    this.summary = el("span", { class: "about", role: "status" });
    this.chosen = el("span", {});
    this.leave = el("button", { type: "button", onclick: onLeave });
    this.selection = el("div", { class: "selection", hidden: true }, this.chosen, this.leave);
    this.audit = false;
  }

  /** @param {import("../shared/session.js").Session} session @param {import("./grid_board.js").GridBoard} board @param {HTMLElement[]} dialogs */
  build(session, board, dialogs) {
    session.element.classList.add("grid-page");
    session.element.replaceChildren(
      el("div", { class: "head" },
        el("div", { class: "what" }, this.title, this.description),
        this.progress,
        session.toolbar),
      this.selection,
      el("div", { class: "bar" }, this.saveBar.starts, this.summary, board.sizeButtons.element, this.bestButton, this.saveBar.button),
      board.host,
      el("div", { class: "under" }, session.words, session.statusLine.element),
      session.hints.element,
      session.help.dialog,
      ...dialogs,
    );
  }

  /** @param {import("./grid_tiles.js").Grid} grid @param {Class | undefined} class_ @param {Map<number, Counts>} counts */
  show(grid, class_, counts) {
    this.#name(class_);
    this.showCounts(counts.get(grid.class));
    const { length } = grid.tiles;
    const behind = Math.max(0, (grid.waiting ?? 0) - length);
    const after = behind ? `, ${behind.toLocaleString("en")} more to answer` : ", the last ones";
    const expected = grid.share == null ? formatCount(length, "image") : `About ${Math.round(grid.share * length)} of ${length} expected`;
    setText(this.summary, grid.waiting == null ? expected : formatCount(length, "image") + after);
  }

  /** Nothing is on screen. @param {Class | undefined} class_ @param {Map<number, Counts>} counts */
  showNone(class_, counts) {
    this.#name(class_);
    this.showCounts(class_ && counts.get(class_.id));
    setText(this.summary, "");
    this.saveBar.showNone();
  }

  /** @param {Counts | undefined} counts of the class on screen */
  showCounts(counts) {
    if (!counts || this.audit) return setText(this.progress, "");
    const number = (/** @type {number} */ value) => Math.round(value).toLocaleString("en");
    const words = [`${number(counts.present)} present`, `${number(counts.absent)} absent`];
    if (counts.unsure) words.push(`${number(counts.unsure)} unsure`);
    words.push(`${number(counts.unknown)} unanswered`);
    if (counts.likely != null) words.push(`about ${number(counts.likely)} to find`);
    setText(this.progress, words.join(" · "));
  }

  /** @param {import("./grid_choice.js").GridChoice} choice */
  setChoice({ selection, audit }) {
    this.audit = audit;
    this.selection.hidden = !selection && !audit;
    setText(this.chosen, audit ? AUDIT_GRID_TEXT : `${formatCount(selection?.count ?? 0, "image")} selected`);
    setText(this.leave, audit ? "Leave the audit grid" : "Leave the selection");
    setText(this.bestText, audit ? "Next class" : NEXT_BEST_TEXT);
    if (audit) setText(this.progress, "");
  }

  /** @param {Class | undefined} class_ */
  #name(class_) {
    setText(this.className, class_?.name ?? (this.audit ? "Audit grid" : "Choosing a class..."));
    setText(this.description, class_?.description ?? "");
    if (class_) this.saveBar.nameClass(class_.name);
  }
}
