// @ts-check
/** What the grid tells a person about itself. */

import { OVERRULE_ROW } from "../shared/contradictions.js";
import { FIND_ROW, FIX_ROW } from "../shared/fix_link.js";
import { STAGE_KEYS } from "../shared/image_stage.js";

/** The row about it in the help of a page. @type {[string, string]} */
export const UNSURE_HELP_ROW = ["U", "unsure, or not: tile under the pointer (also long press)"];

/** @type {[string, string]} */
export const EVENT_HELP_ROW = [",", "show the images of the event that a tile stands for (also a click on ×5)"];

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Mark",
    rows: [
      ["1", "toggle the tile with that key: yes / no (also a click)"],
      UNSURE_HELP_ROW,
      [["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "move from tile to tile"],
      [" ", "toggle the selected tile"],
      ["\\", "start with all Yes, or with all No"],
      ["Enter", "save all tiles as they are marked; the next grid appears"],
      ["Backspace", "undo a whole grid, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
      OVERRULE_ROW,
    ],
  },
  {
    title: "Class and size",
    rows: [
      ["/", "choose a class, or the audit grid (also Ctrl+K)"],
      [".", "skip this class: the next best one"],
      [["-", "+"], "smaller tiles, larger tiles: the next grid has as many as fit"],
      FIND_ROW,
    ],
  },
  {
    title: "Look closer",
    rows: [
      ["Shift", "hold: heat map or boxes of the tile; again switches"],
      [";", "that tile's history and comments (unless answers are hidden)"],
      EVENT_HELP_ROW,
      ["PageUp", "enlarge that tile; Page Down or Escape closes it. While it is open:"],
      FIX_ROW,
      ...STAGE_KEYS,
    ],
  },
];

export const PAGE_HINTS = [
  { at: ".host", by: "mark", text: "Tiles are marked already, ✓ or ✕. Press a key, click or drag to change; hold for unsure." },
  { at: ".decide", by: "decide", text: "Enter saves every tile as it is marked; the next grid appears." },
  { at: "[aria-label=Session]", by: "undo", text: "Backspace undoes a whole grid; ? lists all keys." },
];
