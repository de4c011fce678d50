// @ts-check
/**
 * Boxes of models from elsewhere, drawn over a picture: one drawing as large as the picture's place, which it fills as
 * the picture does. A light line on a dark one is seen on every picture, whatever the theme.
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** @typedef {[string, number, number, number, number, number]} Box name of its model, score, left, top, width, height as shares */

/**
 * @param {Box[]} boxes @param {{width: number, height: number}} image in pixels
 * @param {string} words what it shows, for those who do not see it; "": they hear it elsewhere
 * @returns {SVGSVGElement}
 */
export function drawBoxes(boxes, { width, height }, words) {
  const svg = createSvgElement("svg", { class: "boxes", viewBox: `0 0 ${width} ${height}`, "aria-hidden": words ? null : "true" });
  if (words) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", words);
  }
  for (const kind of ["edge", "line"]) {
    // The surest comes last, over the others.
    for (const [at, [, , left, top, wide, high]] of [...boxes.entries()].reverse()) {
      svg.append(createSvgElement("rect", {
        class: at ? kind : `${kind} surest`,
        x: left * width, y: top * height, width: wide * width, height: high * height,
      }));
    }
  }
  return svg;
}

/**
 * Whose the boxes are: "box of MD, 0.83", or "boxes of MD, 0.83, 0.41; box of SN, 0.90".
 * @param {Box[]} boxes
 */
export function describeBoxes(boxes) {
  /** @type {Map<string, number[]>} */
  const scores = new Map();
  for (const [name, score] of boxes) scores.set(name, [...(scores.get(name) ?? []), score]);
  return [...scores].map(([name, all]) => `${all.length > 1 ? "boxes" : "box"} of ${name}, ${all.map((score) => score.toFixed(2)).join(", ")}`).join("; ");
}

/**
 * Where a box lies, in words: "from the left 10 % to 20 %, from the top 30 % to 50 %".
 * @param {Box} box
 */
export function describePlace([, , left, top, width, height]) {
  const [from, to, above, below] = [left, left + width, top, top + height].map((share) => Math.round(100 * share));
  return `from the left ${from} % to ${to} %, from the top ${above} % to ${below} %`;
}

/** @param {string} tag @param {Record<string, any>} props @returns {any} */
function createSvgElement(tag, props) {
  const node = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(props)) if (value != null) node.setAttribute(name, String(value));
  return node;
}
