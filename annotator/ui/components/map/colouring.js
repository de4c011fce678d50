// @ts-check
/**
 * What the points are coloured by, and the legend that counts them. The colours themselves are in map.css, where they
 * follow the theme; here is which byte of the server's means which of them.
 */

import { underHeadings } from "../shared/classes.js";
import { dot } from "./dots.js";
import { el } from "../shared/dom.js";

const SIGN = 20; // pixels of a sign in the legend
const RADIUS = 6;

/**
 * In the order in which they are drawn: what says most comes last, on top.
 * @type {Record<string, {key: string, name: string, shape: import("./dots.js").Shape, from: number, to: number}[]>}
 */
const KINDS = {
  stage: [
    { key: "open", name: "No answers yet", shape: "dot", from: 0, to: 0 },
    { key: "skipped", name: "Skipped", shape: "ring", from: 1, to: 1 },
    { key: "labels", name: "Some answers", shape: "disc", from: 2, to: 2 },
    { key: "complete", name: "Complete", shape: "square", from: 3, to: 3 },
  ],
  class: [
    { key: "open", name: "Unanswered", shape: "dot", from: 0, to: 0 },
    { key: "absent", name: "Absent", shape: "cross", from: 2, to: 2 },
    { key: "unsure", name: "Unsure", shape: "triangle", from: 3, to: 3 },
    { key: "present", name: "Present", shape: "disc", from: 1, to: 1 },
  ],
  probability: [
    { key: "open", name: "No prediction", shape: "ring", from: 255, to: 255 },
    { key: "p0", name: "Under 20 %", shape: "dot", from: 0, to: 50 },
    { key: "p1", name: "20 to 40 %", shape: "dot", from: 51, to: 101 },
    { key: "p2", name: "40 to 60 %", shape: "disc", from: 102, to: 152 },
    { key: "p3", name: "60 to 80 %", shape: "disc", from: 153, to: 203 },
    { key: "p4", name: "80 % and more", shape: "disc", from: 204, to: 254 },
  ],
};

/** @typedef {import("../shared/session.js").Class} Class */

export class Colouring {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {"stage" | "class" | "probability"} */
    this.by = "stage";
    /** @type {Class[]} */
    this.classes = [];
    this.buttons = [["stage", "Progress"], ["class", "Class"], ["probability", "Probability"]].map(([by, text]) =>
      el("button", { type: "button", "data-by": by, "aria-pressed": String(by === "stage"),
        onclick: () => this.set(/** @type {"stage" | "class" | "probability"} */ (by)) }, text));
    this.select = el("select", { "aria-label": "Class", hidden: true, onchange: () => this.onChange() });
    this.legend = el("ul", { class: "legend", "aria-label": "Legend" });
    this.element = el("section", { class: "colouring", "aria-label": "Colors" },
      el("h3", {}, "Color by"),
      el("div", { class: "switch", role: "group", "aria-label": "Color by" }, ...this.buttons),
      this.select, this.legend);
    this.#drawLegend();
  }

  /** @param {"stage" | "class" | "probability"} by */
  set(by) {
    this.by = by;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.by === by));
    this.select.hidden = by === "stage";
    this.#drawLegend();
    this.onChange();
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    if (JSON.stringify(classes) === JSON.stringify(this.classes)) return;
    const chosen = this.select.value;
    this.classes = classes;
    this.select.replaceChildren(...underHeadings(classes).flatMap((group) => {
      const options = group.classes.map((class_) => el("option", { value: class_.id }, class_.name));
      return group.heading ? [el("optgroup", { label: group.heading }, ...options)] : options;
    }));
    if (classes.some((class_) => String(class_.id) === chosen)) this.select.value = chosen;
    for (const button of this.buttons.slice(1)) button.disabled = !classes.length;
  }

  /** What to ask the server for. @returns {import("./data.js").Colouring} */
  get wanted() {
    return { by: this.by, class: this.by === "stage" ? null : Number(this.select.value) };
  }

  /**
   * The bytes as kinds, and the legend's counts brought up to date.
   * @param {Uint8Array} bytes @returns {{kinds: import("./dots.js").Kind[], kindOf: Uint8Array}}
   */
  kinds(bytes) {
    const kindOfByte = new Uint8Array(256);
    KINDS[this.by].forEach(({ from, to }, kind) => kindOfByte.fill(kind, from, to + 1));
    const kindOf = bytes.map((byte) => kindOfByte[byte]);
    const counts = new Array(KINDS[this.by].length).fill(0);
    for (const kind of kindOf) counts[kind] += 1;
    counts.forEach((count, kind) => {
      const row = this.rows[kind];
      row.count.replaceChildren(count.toLocaleString("en"));
      row.element.classList.toggle("none", count === 0);
    });
    return { kinds: this.#paint(), kindOf };
  }

  #drawLegend() {
    this.rows = KINDS[this.by].map(({ key, name }) => {
      const sign = el("canvas", { width: SIGN * devicePixelRatio, height: SIGN * devicePixelRatio, "data-kind": key, "aria-hidden": "true" });
      const count = el("span", { class: "count" });
      return { sign, count, element: el("li", {}, sign, el("span", {}, name), count) };
    });
    this.legend.replaceChildren(...this.rows.map((row) => row.element).reverse());
  }

  /** The kinds in the colours of the theme as it is now. @returns {import("./dots.js").Kind[]} */
  #paint() {
    return KINDS[this.by].map(({ shape }, at) => {
      const { sign } = this.rows[at];
      const kind = { shape, colour: getComputedStyle(sign).color };
      dot(sign, kind, RADIUS * devicePixelRatio);
      return kind;
    });
  }
}
