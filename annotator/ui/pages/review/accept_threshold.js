// @ts-check
/** The threshold: the probability from which on suggestions are accepted all at once, and the button that does it. */

import { el, keyButton } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

const DEFAULT_THRESHOLD_PERCENT = 90; // percent: above it suggestions are right often enough to be accepted together

export class AcceptThreshold {
  /** @param {{project: string, onMove: () => void, onAccept: () => void}} options */
  constructor({ project, onMove, onAccept }) {
    this.store = `annotator:${project}:line`;
    this.onMove = onMove;
    const percent = readSetting(this.store);
    this.slider = el("input", {
      type: "range", min: "5", max: "99", value: String(percent >= 5 && percent <= 99 ? percent : DEFAULT_THRESHOLD_PERCENT),
      "aria-label": "Threshold: accept all from this probability on",
      oninput: () => this.#move(),
    });
    this.output = el("output", {});
    this.button = keyButton("", "A", onAccept);
    this.words = /** @type {HTMLElement} */ (this.button.firstElementChild);
    this.element = el("div", { class: "above" }, this.button,
      el("div", { class: "row" }, el("span", { class: "label" }, "Threshold"), this.slider, this.output));
    this.open = 0;
    this.#tell();
  }

  /** 0..1 */
  get at() {
    return Number(this.slider.value) / 100;
  }

  /** @param {number} open how many suggestions of this image would be accepted */
  offer(open) {
    if (open === this.open) return;
    this.open = open;
    this.#tell();
  }

  #move() {
    writeSetting(this.store, Number(this.slider.value));
    this.#tell();
    this.onMove();
  }

  #tell() {
    this.output.textContent = `${this.slider.value} %`;
    this.words.textContent = `Accept all above ${this.slider.value} %${this.open ? ` (${this.open})` : ""}`;
  }
}
