// @ts-check
/** What is around the tiles: the class and its counts, how the grid begins, its size, and the button that saves it. */

import { Deciding, write } from "./deciding.js";
import { counted, el, kbd, keyButton } from "../shared/dom.js";

const BEST = "Next best class";
const AUDIT = "Audit grid: random images, predictions hidden.";

/** @typedef {import("./picker.js").Counts} Counts */
/** @typedef {{id: number, name: string, description: string}} Class */

export class Surroundings {
  /**
   * @param {{onPicker: () => void, onBest: () => void,
   *          onStart: (start: "yes" | "no") => void, onDecide: () => void, onLeave: () => void}} options
   */
  constructor({ onPicker, onBest, onStart, onDecide, onLeave }) {
    this.className = el("span", { class: "name" });
    this.title = el("h2", {},
      el("button", { type: "button", class: "class-name", "aria-keyshortcuts": "/ Control+K", title: "Choose a class", onclick: onPicker },
        this.className, el("span", { class: "down", "aria-hidden": "true" }, "▾"), kbd("/")));
    this.description = el("span", { class: "description" });
    this.progress = el("span", { class: "progress" });
    this.bestButton = keyButton(BEST, ".", onBest);
    this.bestText = /** @type {HTMLElement} */ (this.bestButton.firstElementChild);
    this.deciding = new Deciding({ onStart, onDecide });
    this.summary = el("span", { class: "about", role: "status" });
    this.chosen = el("span", {});
    this.leave = el("button", { type: "button", onclick: onLeave });
    this.selection = el("div", { class: "selection", hidden: true }, this.chosen, this.leave);
    this.audit = false;
  }

  /** @param {import("../shared/session.js").Session} session @param {import("./board.js").Board} board @param {HTMLElement[]} dialogs */
  build(session, board, dialogs) {
    session.element.classList.add("grid-page");
    session.element.replaceChildren(
      el("div", { class: "head" },
        el("div", { class: "what" }, this.title, this.description),
        this.progress,
        session.toolbar),
      this.selection,
      el("div", { class: "bar" }, this.deciding.starts, this.summary, board.sizes.element, this.bestButton, this.deciding.button),
      board.host,
      el("div", { class: "under" }, session.words, session.foot.element),
      session.hints.element,
      session.help.dialog,
      ...dialogs,
    );
  }

  /** @param {import("./tiles.js").Grid} grid @param {Class | undefined} class_ @param {Map<number, Counts>} counts */
  show(grid, class_, counts) {
    this.#name(class_);
    this.showCounts(counts.get(grid.class));
    const { length } = grid.tiles;
    const behind = Math.max(0, (grid.waiting ?? 0) - length);
    const after = behind ? `, ${behind.toLocaleString("en")} more to answer` : ", the last ones";
    const expected = grid.share == null ? counted(length, "image") : `About ${Math.round(grid.share * length)} of ${length} expected`;
    write(this.summary, grid.waiting == null ? expected : counted(length, "image") + after);
  }

  /** Nothing is on screen. @param {Class | undefined} class_ @param {Map<number, Counts>} counts */
  showNone(class_, counts) {
    this.#name(class_);
    this.showCounts(class_ && counts.get(class_.id));
    write(this.summary, "");
    this.deciding.showNone();
  }

  /** @param {Counts | undefined} counts of the class on screen */
  showCounts(counts) {
    if (!counts || this.audit) return write(this.progress, "");
    const number = (/** @type {number} */ value) => Math.round(value).toLocaleString("en");
    const words = [`${number(counts.present)} present`, `${number(counts.absent)} absent`];
    if (counts.unsure) words.push(`${number(counts.unsure)} unsure`);
    words.push(`${number(counts.unknown)} unanswered`);
    if (counts.likely != null) words.push(`about ${number(counts.likely)} to find`);
    write(this.progress, words.join(" · "));
  }

  /** @param {import("./choice.js").Choice} choice */
  setChoice({ selection, audit }) {
    this.audit = audit;
    this.selection.hidden = !selection && !audit;
    write(this.chosen, audit ? AUDIT : `${counted(selection?.count ?? 0, "image")} selected`);
    write(this.leave, audit ? "Leave the audit grid" : "Leave the selection");
    write(this.bestText, audit ? "Next class" : BEST);
    if (audit) write(this.progress, "");
  }

  /** @param {Class | undefined} class_ */
  #name(class_) {
    write(this.className, class_?.name ?? (this.audit ? "Audit grid" : "Choosing a class..."));
    write(this.description, class_?.description ?? "");
    if (class_) this.deciding.nameClass(class_.name);
  }
}
