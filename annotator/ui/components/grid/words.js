// @ts-check
/** What the grid tells a person about itself. */

import { STAGE_KEYS } from "../shared/stage.js";

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEYS = [
  {
    title: "Marking",
    rows: [
      ["1", "the tile with that key: turn it; again for unsure, and once more back"],
      [["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "move from tile to tile"],
      [" ", "turn the tile one has moved to"],
      [";", "begin the other way: all are, or none is"],
      ["Enter", "decide all tiles, each as it is marked; on to the next grid"],
      ["Backspace", "undo the whole grid, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
    ],
  },
  {
    title: "Classes and sizes",
    rows: [
      ["/", "choose a class, or the audit grid: images drawn at random, without what the model thinks (also Ctrl+K)"],
      [".", "the next best class"],
      [["<", ">"], "smaller grid, larger grid"],
    ],
  },
  {
    title: "Looking closely",
    rows: [
      ["Shift", "held: the heat map of the tile under the pointer, or of the one moved to"],
      ["PageUp", "enlarge that tile; Page Down or Escape leads back. In there:"],
      ...STAGE_KEYS,
    ],
  },
];

export const HINTS = [
  "Every tile is marked already, ✓ or ✕. Press its key, click it, or drag over several to change that.",
  "Press a tile once more when you are unsure. Hold Shift to see its heat map.",
  "Enter saves every tile as it is marked and brings the next grid.",
];

/**
 * What was taken back, or decided again, when it is not on screen: it is from before a reload, or from another page.
 * @param {any} entry as it was sent @param {"undone" | "redone"} how @param {Map<number, string>} names of the classes
 */
export function batchInWords(entry, how, names) {
  const words = how === "undone" ? "Taken back" : "Decided again";
  const cells = /** @type {any[][]} */ (entry?.cells ?? []);
  const ids = new Set(cells.length ? cells.map((cell) => cell[1]) : [entry?.class]);
  const name = ids.size === 1 ? names.get([...ids][0]) : "";
  const about = name ? ` about ${name}` : "";
  if (!cells.length) return `${words}: one decision${about}, from another page.`;
  const count = (/** @type {number} */ state) => cells.filter((cell) => cell[2] === state).length;
  return `${words}: ${cells.length} answers${about} (${count(1)} yes, ${count(-1)} no, ${count(0)} unsure).`;
}
