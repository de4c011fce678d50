// @ts-check
/** What the help of the Review page lists, and what a first visit begins with. */

import { OVERRULE_ROW } from "../shared/contradictions.js";
import { FIND_ROW, FIX_ROW } from "../shared/fix_link.js";
import { HISTORY_ROW } from "../shared/history.js";
import { STAGE_KEYS } from "../shared/image_stage.js";
import { STRIP_KEYS } from "../shared/event_strip.js";

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Answer",
    rows: [
      ["Y", "accept: mark present"],
      ["N", "reject: mark absent"],
      ["U", "mark unsure"],
      ["A", "accept all above the threshold; undone together"],
      [["/", "Ctrl+K"], "add a class that is not suggested: label it present, and stay"],
      ["Enter", "nothing else here: mark every unanswered class absent, which completes the image"],
      [".", "skip (also Space): next image, without answering the rest"],
      OVERRULE_ROW,
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
    ],
  },
  {
    title: "Events",
    rows: [[["Shift", "Y"], "accept it on the whole event (also Shift with N, U)"], ...STRIP_KEYS],
  },
  {
    title: "Look",
    rows: [
      [["1", "9"], "select a suggestion (also ↑ and ↓, or the pointer)"],
      ["H", "heat map on or off (with boxes: boxes, heat map, neither)"],
      ["M", "where people disagree: show what the model thinks"],
      [["-", "+"], "heat map weaker, stronger (also [ and ])"],
      [["ArrowLeft", "ArrowRight"], "previous image, next image"],
      HISTORY_ROW,
      ["F", "filter by class"],
      FIX_ROW,
      FIND_ROW,
      ["?", "this list (also F1)"],
      ...STAGE_KEYS,
    ],
  },
];

export const PAGE_HINTS = [
  { at: ".root:has(.suggestion) .stage", by: "decide", text: "Warm colors or boxes show where a model saw the selected suggestion.", touch: "Warm colors or boxes show where a model saw the selected suggestion." },
  { at: ".suggestions:has(.suggestion)", by: "decide", text: "Y accepts the selected suggestion, N rejects it, U is unsure.", touch: "Accept or reject; or draw the picture right or left." },
  { at: ".root:has(.suggestion) .above", by: "above", text: "A accepts everything above the threshold, which you set." },
];
