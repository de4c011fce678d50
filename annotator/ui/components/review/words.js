// @ts-check
/** What the help of the Review page lists, and what a first visit begins with. */

import { STAGE_KEYS } from "../shared/stage.js";

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEYS = [
  {
    title: "Answer",
    rows: [
      ["Y", "accept: it is on the image"],
      ["N", "reject: it is not"],
      ["U", "unsure"],
      ["A", "accept all above the line, as one decision"],
      ["Enter", "nothing else here: every class not answered is absent, the image is complete"],
      [" ", "next image; what is open here stays open"],
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
    ],
  },
  {
    title: "Look",
    rows: [
      [["1", "9"], "choose a suggestion (also ↑ and ↓, or the pointer)"],
      ["H", "heat map on or off"],
      [["-", "+"], "weaker or stronger heat map (also [ and ])"],
      [["ArrowLeft", "ArrowRight"], "earlier image, later image"],
      ["/", "filter by class (also Ctrl+K)"],
      ["?", "this list (also F1)"],
      ...STAGE_KEYS,
    ],
  },
];

export const HINTS = [
  "The warm colours show where the model looked. Y accepts, N rejects, U is unsure.",
  "A accepts everything above the line at once; you choose where the line is.",
  "Enter says that nothing else is there, Space goes on, Backspace takes back.",
];
