// @ts-check
/** What a decision said, in words: for undo and redo, and for what could not be saved. */

import { STATE_WORDS, formatCount } from "./dom.js";

/**
 * "belt on 0118.jpg", "24 answers for fox (20 present, 4 absent)", "skip of 0118.jpg".
 * @param {any} entry the decision, as it was sent
 * @param {Map<number, string>} names of the classes
 * @param {string} [image] its name, where it is known
 */
export function describeDecision(entry, names, image = "") {
  const name = (/** @type {number} */ id) => names.get(id) ?? `class ${id}`;
  const where = image || (entry.image == null ? "" : `image ${entry.image}`);
  const on = where && ` on ${where}`;
  const words = {
    label: () => `${name(entry.class)}${entry.state === 1 ? "" : ` ${STATE_WORDS[entry.state] ?? ""}`}${on}`,
    batch: () => describeBatch([...(entry.cells ?? []), ...(entry.copies ?? [])], name, image) + (entry.copies?.length ? " of the event" : ""),
    clear: () => `${name(entry.class)} cleared${on}`,
    done: () => `nothing else${on || " here"}`,
    skip: () => `skip${where && ` of ${where}`}`,
    flag: () => (entry.note ? `flag "${String(entry.note).slice(0, 80)}"${on}` : `flag removed${where && ` from ${where}`}`),
    comment: () => `comment${on}`,
    undo: () => "undo",
  }[entry.action];
  return words ? words() : "a decision that cannot be read";
}

/** @param {any[][]} cells [image, class, state] @param {(id: number) => string} name of a class @param {string} image */
function describeBatch(cells, name, image) {
  const classes = [...new Set(cells.map((cell) => cell?.[1]))];
  const images = new Set(cells.map((cell) => cell?.[0]));
  const states = new Set(cells.map((cell) => cell?.[2]));
  const count = (/** @type {number} */ state) => cells.filter((cell) => cell?.[2] === state).length;
  const parts = [1, -1, 0].filter(count).map((state) => `${count(state)} ${STATE_WORDS[state]}`);
  if (states.has(null)) parts.push(`${cells.filter((cell) => cell?.[2] === null).length} cleared`);
  const of = classes.length > 0 && classes.length <= 3 ? ` for ${classes.map(name).join(", ")}` : "";
  const on = images.size === 1 ? ` on ${image || `image ${[...images][0]}`}` : "";
  return `${cells.length ? formatCount(cells.length, "answer") : "several answers"}${of}${on}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}
