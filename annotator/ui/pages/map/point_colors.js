// @ts-check
/**
 * What the points are colored by, and the legend that counts them. The colors themselves are in map.css, where they
 * follow the theme; here is which byte of the server's means which of them.
 */

import { groupByHeading } from "../shared/class_search.js";
import { drawDot } from "./point_sprites.js";
import { el } from "../shared/dom.js";

const SIGN_PIXELS = 20; // pixels of a sign in the legend
const SIGN_RADIUS_PIXELS = 6;
const RAMP_STEPS = 32; // of a ramp: more cannot be told apart
const NOT_KNOWN_BYTE = 255;
/** @type {import("./point_sprites.js").Shape[]} */
const CHOICE_SHAPES = ["disc", "square", "triangle", "cross", "ring"]; // of choices, in turn: neighbors in color differ in shape

/**
 * @typedef {{key: string, name: string, shape: import("./point_sprites.js").Shape, from: number, to: number, colour?: string}} Row
 *   from, to: the bytes that mean it; colour: where it is none of its key (map.css)
 */

/**
 * In the order in which they are drawn: what says most comes last, on top.
 * @type {Record<string, Row[]>}
 */
const KIND_ROWS = {
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

/** @type {Row} */
const NOT_KNOWN_ROW = { key: "open", name: "Not known", shape: "dot", from: NOT_KNOWN_BYTE, to: NOT_KNOWN_BYTE };

/** The kinds of a fact, by what its bytes mean. @param {import("./map_data.js").Meaning} meaning @returns {Row[]} */
function listKinds({ names, rest }) {
  if (names) {
    const rows = names.map((name, at) => /** @type {Row} */ (rest && at === names.length - 1
      ? { key: "other", name, shape: "ring", from: at, to: at }
      : { key: `choice${at}`, name, shape: CHOICE_SHAPES[at % CHOICE_SHAPES.length], from: at, to: at }));
    return [NOT_KNOWN_ROW, ...rows];
  }
  return [NOT_KNOWN_ROW, ...Array.from({ length: RAMP_STEPS }, (_, step) => /** @type {Row} */ ({
    key: "ramp", name: "", shape: "disc", from: Math.ceil((step * NOT_KNOWN_BYTE) / RAMP_STEPS), to: Math.ceil(((step + 1) * NOT_KNOWN_BYTE) / RAMP_STEPS) - 1,
    colour: mixRampColor(step / (RAMP_STEPS - 1)),
  }))];
}

/** The color of a place on the ramp of map.css. @param {number} share 0 to 1 */
function mixRampColor(share) {
  const [from, to] = share < 0.5 ? ["low", "middle"] : ["middle", "high"];
  return `color-mix(in oklab, var(--ramp-${to}) ${200 * (share < 0.5 ? share : share - 0.5)}%, var(--ramp-${from}))`;
}

/** @typedef {import("../shared/session.js").Class} Class @typedef {import("./map_data.js").By} By */

export class PointColors {
  /** @param {[string, string][]} facts name and label of each @param {() => void} onChange */
  constructor(facts, onChange) {
    this.onChange = onChange;
    /** @type {By} */
    this.by = "stage";
    /** What the bytes of the fact mean. @type {import("./map_data.js").Meaning} */
    this.meaning = {};
    /** @type {Class[]} */
    this.classes = [];
    this.buttons = [["stage", "Progress"], ["class", "Class"], ["probability", "Probability"], ["fact", "Fact"]].map(([by, text]) =>
      el("button", { type: "button", "data-by": by, "aria-pressed": String(by === "stage"),
        onclick: () => this.set(/** @type {By} */ (by)) }, text));
    this.select = el("select", { "aria-label": "Class", hidden: true, onchange: () => this.onChange() });
    this.fact = el("select", { "aria-label": "Fact", hidden: true, onchange: () => this.set("fact") }, ...facts.map(([name, label]) => el("option", { value: name }, label)));
    this.buttons[3].disabled = !facts.length;
    this.legend = el("ul", { class: "legend", "aria-label": "Legend" });
    this.element = el("section", { class: "colouring", "aria-label": "Colors" },
      el("h3", {}, "Color by"),
      el("div", { class: "switch", role: "group", "aria-label": "Color by" }, ...this.buttons),
      this.select, this.fact, this.legend);
    this.#drawLegend();
  }

  /** @param {By} by */
  set(by) {
    this.by = by;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.by === by));
    this.select.hidden = by === "stage" || by === "fact";
    this.fact.hidden = by !== "fact";
    this.meaning = { names: [] }; // not known yet
    this.#drawLegend();
    this.onChange();
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    if (JSON.stringify(classes) === JSON.stringify(this.classes)) return;
    const chosen = this.select.value;
    this.classes = classes;
    this.select.replaceChildren(...groupByHeading(classes).flatMap((group) => {
      const options = group.classes.map((class_) => el("option", { value: class_.id }, class_.name));
      return group.heading ? [el("optgroup", { label: group.heading }, ...options)] : options;
    }));
    if (classes.some((class_) => String(class_.id) === chosen)) this.select.value = chosen;
    for (const button of this.buttons.slice(1, 3)) button.disabled = !classes.length;
  }

  /** What to ask the server for. @returns {import("./map_data.js").ColorRequest} */
  get colorRequest() {
    const ofClass = this.by === "class" || this.by === "probability";
    return { by: this.by, class: ofClass ? Number(this.select.value) : null, fact: this.by === "fact" ? this.fact.value : "" };
  }

  /**
   * The bytes as kinds, and the legend's counts brought up to date.
   * @param {Uint8Array} bytes @param {import("./map_data.js").Meaning} meaning of the bytes of a fact
   * @returns {{kinds: import("./point_sprites.js").Kind[], kindOf: Uint8Array}}
   */
  classifyPoints(bytes, meaning) {
    if (this.by === "fact" && JSON.stringify(meaning) !== JSON.stringify(this.meaning)) {
      this.meaning = meaning;
      this.#drawLegend();
    }
    const kindOfByte = new Uint8Array(256);
    this.kindRows.forEach(({ from, to }, kind) => kindOfByte.fill(kind, from, to + 1));
    const kindOf = bytes.map((byte) => kindOfByte[byte]);
    const counts = new Array(this.kindRows.length).fill(0);
    for (const kind of kindOf) counts[kind] += 1;
    counts.forEach((count, kind) => {
      const row = this.rows[kind];
      row.count.replaceChildren(count.toLocaleString("en"));
      row.element.classList.toggle("none", count === 0);
    });
    return { kinds: this.#paint(), kindOf };
  }

  #drawLegend() {
    /** @type {Row[]} */
    this.kindRows = this.by === "fact" ? listKinds(this.meaning) : KIND_ROWS[this.by];
    this.rows = this.kindRows.map(({ key, name, colour }) => {
      const sign = el("canvas", { width: SIGN_PIXELS * devicePixelRatio, height: SIGN_PIXELS * devicePixelRatio, "data-kind": key, "aria-hidden": "true" });
      if (colour) sign.style.color = colour;
      const count = el("span", { class: "count" });
      return { sign, count, element: el("li", { title: name }, sign, el("span", { class: "name", dir: "auto" }, name), count) };
    });
    const { names, low, high } = this.by === "fact" ? this.meaning : { names: [] };
    // A ramp is one line with its ends; the signs of its steps only tell the theme's colors.
    const ramp = names ? [] : [el("li", { class: "ramp" }, el("span", { class: "colours", "aria-hidden": "true" }), el("span", { class: "ends" }, el("span", {}, low ?? ""), el("span", {}, high ?? "")))];
    for (const { element } of names ? [] : this.rows.slice(1)) element.hidden = true;
    const lines = this.rows.map((row) => row.element);
    // Of choices the commonest stands first; of all else what says most.
    this.legend.replaceChildren(...ramp, ...(this.by === "fact" ? [...lines.slice(1), lines[0]] : lines.reverse()));
  }

  /** The kinds in the colors of the theme as it is now. @returns {import("./point_sprites.js").Kind[]} */
  #paint() {
    return this.kindRows.map(({ shape }, at) => {
      const { sign } = this.rows[at];
      const kind = { shape, colour: getComputedStyle(sign).color };
      drawDot(sign, kind, SIGN_RADIUS_PIXELS * devicePixelRatio);
      return kind;
    });
  }
}
