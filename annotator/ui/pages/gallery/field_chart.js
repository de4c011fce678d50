// @ts-check
/**
 * The images of the filter by a fact, as bars: by place, by hour, by brightness. A bar is a button that filters by its
 * value, and pressed again no more. What the filter says of the fact itself does not count, so that one may go from bar
 * to bar.
 */

import { el, formatCount } from "../shared/dom.js";

/**
 * @typedef {{label: string, given: string, count: number}} Bar  given: the value of the fact's filter; "": none shows these
 * @typedef {{label: string, kind: "choice" | "number" | "time", bars: Bar[], unknown: number}} Counts
 */

export class FieldChart {
  /**
   * @param {{facts: [string, string][], ask: (fact: string) => Promise<Counts>, givenOf: (fact: string) => string,
   *          give: (fact: string, value: string) => void}} options
   *   facts     name and label of each
   *   ask       count the images of the filter by a fact
   *   givenOf   the value that the filter has of a fact
   *   give      filter by this value of a fact; "": by none
   */
  constructor({ facts, ask, givenOf, give }) {
    this.ask = ask;
    this.givenOf = givenOf;
    this.give = give;
    this.asked = 0;
    this.select = el("select", { "aria-label": "Fact to count by", onchange: () => this.refresh() }, ...facts.map(([value, label]) => el("option", { value }, label)));
    this.words = el("p", { class: "quiet", role: "status" });
    this.bars = el("div", { class: "bars", role: "group" });
    this.element = el("section", { class: "chart", "aria-label": "Images by a fact", hidden: true },
      el("div", { class: "fields" }, el("span", { class: "quiet" }, "Images by"), this.select, this.words),
      this.bars);
  }

  /** Show it, or hide it. @returns {boolean} whether it is shown now */
  toggle() {
    this.element.hidden = !this.element.hidden;
    if (!this.element.hidden) {
      this.refresh();
      this.select.focus({ preventScroll: true });
    }
    return !this.element.hidden;
  }

  /** Count anew: other images are shown, or another fact is chosen. */
  async refresh() {
    if (this.element.hidden) return;
    const number = (this.asked += 1);
    const fact = this.select.value;
    try {
      const counts = await this.ask(fact);
      if (number === this.asked) this.#show(fact, counts);
    } catch (/** @type {any} */ error) {
      if (number !== this.asked) return;
      this.bars.replaceChildren();
      this.words.textContent = `Not counted: ${error.message}.`;
    }
  }

  /** @param {string} fact @param {Counts} counts */
  #show(fact, { label, kind, bars, unknown }) {
    const most = Math.max(1, ...bars.map(({ count }) => count));
    const chosen = this.givenOf(fact);
    // The bars are made anew; a key goes on where it was.
    const root = /** @type {ShadowRoot} */ (this.element.getRootNode());
    const at = [...this.bars.children].indexOf(/** @type {any} */ (root.activeElement));
    this.bars.classList.toggle("rows", kind === "choice");
    this.bars.classList.toggle("banded", kind === "number");
    this.bars.setAttribute("aria-label", `Images by ${label}`);
    this.bars.replaceChildren(...bars.map((bar) => this.#bar(fact, bar, bar.count / most, kind === "number", bar.given !== "" && bar.given === chosen)));
    const focused = at < 0 ? null : this.bars.children[Math.min(at, this.bars.children.length - 1)];
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
    const known = bars.reduce((sum, { count }) => sum + count, 0);
    const rest = unknown ? `${formatCount(unknown, "image")} without it` : "";
    this.words.textContent = known ? rest : `No image here has it${unknown ? ` (${formatCount(unknown, "image")})` : ""}.`;
  }

  /**
   * @param {string} fact @param {Bar} bar @param {number} share of the longest
   * @param {boolean} banded its name is the lower end, under its left edge @param {boolean} pressed
   */
  #bar(fact, { label, given, count }, share, banded, pressed) {
    const name = banded ? label.split(" to ")[0] : label;
    const words = `${label}: ${formatCount(count, "image")}`;
    return el("button", {
      type: "button", class: "bar", title: words, "aria-label": words, "aria-pressed": String(pressed), disabled: !given || (!count && !pressed),
      style: `--share: ${share}`, onclick: () => this.give(fact, pressed ? "" : given),
    }, el("span", { class: "bar-name", dir: "auto" }, name), el("span", { class: "bar-line" }), el("span", { class: "bar-count" }, count.toLocaleString("en")));
  }
}
