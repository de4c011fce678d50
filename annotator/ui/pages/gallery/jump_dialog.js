// @ts-check
/** "Go to number N". */

import { el, kbd } from "../shared/dom.js";

export class JumpDialog {
  /** @param {(index: number) => void} onGo */
  constructor(onGo) {
    this.onGo = onGo;
    this.field = el("input", { type: "number", min: "1", step: "1", inputmode: "numeric", id: "gallery-number" });
    this.label = el("label", { for: "gallery-number" });
    this.dialog = el("dialog", { class: "jump", "aria-label": "Go to an image" },
      el("div", { class: "tools" }, this.label, this.field,
        el("button", { type: "button", class: "main", onclick: () => this.go() }, el("span", {}, "Go"), kbd("Enter")),
        el("button", { type: "button", onclick: () => this.dialog.close() }, el("span", {}, "Close"), kbd("Esc"))));
    this.total = 0;
  }

  /** @param {number} at index of the cursor @param {number} total images of the filter */
  open(at, total) {
    if (this.dialog.open || !total) return;
    this.total = total;
    this.label.textContent = `Number, 1 to ${total.toLocaleString("en")}`;
    this.field.max = String(total);
    this.field.value = String(at + 1);
    this.dialog.showModal();
    this.field.select();
  }

  go() {
    const number = Math.round(Number(this.field.value));
    this.dialog.close();
    if (number >= 1) this.onGo(Math.min(number, this.total) - 1);
  }

  /** @param {string} key @returns {boolean} */
  key(key) {
    if (key === "Escape") this.dialog.close();
    else if (key === "Enter") this.go();
    else return false;
    return true;
  }
}
