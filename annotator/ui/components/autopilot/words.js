// @ts-check
/** What Autopilot tells a person about itself. */

import { STAGE_KEYS } from "../shared/stage.js";

const MARK = { yes: "Mark the wrong ones and decide all of them.", no: "Mark the right ones and decide all of them." };
const BEFORE = {
  again: "Answered before, and shown without what the model thinks. ",
  audit: "Shown without what the model thinks, so that its estimates stay honest. ",
};
const SINGLE = {
  image: "Every class is answered at once: the marked ones are present, all others absent.",
  click: "Press one class that is on the image.",
};

/** What there is to do, as the grid begins now. @param {import("./autopilot.js").Action} action */
export function taskOf(action) {
  const { kind, grid } = action;
  return grid ? (BEFORE[isRelabel(action) ? "again" : kind] ?? "") + MARK[grid.start] : SINGLE[kind];
}

/** Whether it settles nothing: its tiles have answers, which are asked once more. @param {import("./autopilot.js").Action} action */
export function isRelabel({ kind, decided }) {
  return kind === "grid" && !decided;
}

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEYS = [
  {
    title: "Everywhere",
    rows: [
      ["Enter", "decide what is on screen, as it is marked; on to what is worth most next"],
      [".", "skip: something else instead (also Space, where there is one image)"],
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
      ["?", "this list (also F1)"],
    ],
  },
  {
    title: "Many images, one class",
    rows: [
      ["1", "the tile with that key: turn it; again for unsure, and once more back"],
      [["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "move from tile to tile"],
      [" ", "turn the tile one has moved to"],
      [";", "begin the other way: all are, or none is"],
      ["Shift", "held: the heat map of the tile under the pointer, or of the one moved to"],
      ["PageUp", "enlarge that tile; Page Down or Escape leads back"],
    ],
  },
  {
    title: "One image",
    rows: [
      ["1", "the class with that key: one that is asked for ends it; of several, each is marked or cleared"],
      [["Shift", "1"], "one class and stay on the image"],
      ["-", "the next class is marked unsure"],
      [["/", "Ctrl+K"], "find a class by its name: Enter takes it; with nothing typed Enter closes the finder"],
      ...STAGE_KEYS,
    ],
  },
];

export const HINTS = [
  "What brings most for your time comes next: mark it and press Enter.",
  "A full stop skips what you would rather not do now.",
  "Backspace takes back whatever you did; ? lists all keys.",
];
