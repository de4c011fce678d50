// @ts-check
/** How a grid begins, what it is marked as, and the button that saves it. */

import { el, kbd, setText } from "../shared/dom.js";

export class SaveBar {
  /** @param {{onStart: (start: "yes" | "no") => void, onDecide: () => void}} options */
  constructor({ onStart, onDecide }) {
    this.startButtons = /** @type {("yes" | "no")[]} */ (["yes", "no"]).map((start) =>
      el("button", { type: "button", "aria-pressed": "false", "data-start": start, onclick: () => onStart(start) }));
    this.nameClass("");
    this.starts = el("div", { class: "joined starts", role: "group", "aria-label": "How tiles start", "aria-keyshortcuts": "\\" }, ...this.startButtons);
    this.below = el("span", { class: "below" });
    this.sum = el("span", { class: "sum" });
    this.button = el("button", { type: "button", class: "main decide", "aria-keyshortcuts": "Enter", onclick: onDecide },
      el("span", {}, "Save all", this.below), this.sum, kbd("Enter"));
  }

  /** @param {string} name of the class that is asked about */
  nameClass(name) {
    setText(this.startButtons[0], "Start with all Yes");
    setText(this.startButtons[1], "Start with all No");
    this.startButtons[0].title = name && `All tiles start as ${name}: mark the wrong ones`;
    this.startButtons[1].title = name && `No tile starts as ${name}: mark the right ones`;
  }

  /** @param {import("./grid_tiles.js").GridTiles} view @param {string} name */
  showMarks(view, name) {
    const [yes, no, unsure] = [1, -1, 0].map((state) => view.count(state));
    const { guessCount } = view;
    setText(this.sum, `${yes} yes · ${no} no${unsure ? ` · ${unsure} unsure` : ""}${guessCount ? ` · ${guessCount} guessed` : ""}${view.moreCount ? ` · ${view.moreCount} more of events` : ""}`);
    if (this.button.disabled) this.button.disabled = false;
    for (const button of this.startButtons) {
      const pressed = String(button.dataset.start === view.grid.start);
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    }
    this.nameClass(name);
  }

  /** @param {number} count of tiles that nobody has scrolled to yet, and that are saved, too */
  showBelow(count) {
    setText(this.below, count ? ` · ${count} below` : "");
  }

  /** Nothing is on screen. */
  showNone() {
    setText(this.sum, "");
    this.button.disabled = true;
  }
}
