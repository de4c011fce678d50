// @ts-check
/** What the help of the Annotate page lists, and what a first visit begins with. */

import { FIND_ROW } from "../shared/fix.js";
import { HISTORY_ROW } from "../shared/history.js";
import { STAGE_KEYS } from "../shared/stage.js";

/** What pressing a class does, as the page begins. */
const PRESS = {
  one: "the image is labeled and the next image appears.",
  all: "it is marked, or unmarked again. Enter goes on.",
};
const TAP = { ...PRESS, all: "it is marked, or unmarked again. “Nothing else here” goes on." };

/** @param {"one" | "all"} mode as the server has it for this person */
export const hintsFor = (mode) => [
  { at: ".classes", side: "left", by: "decide", text: `Press the key on a class: ${PRESS[mode]}`, touch: `Tap a class: ${TAP[mode]}` },
  { at: ".finder", side: "left", by: "find", text: "Press / and type to find any class by name.", touch: "“Find a class” finds any class by its name." },
  { at: "[aria-label=Session]", side: "above", by: "undo", text: "Backspace undoes; ? lists all keys.", touch: "“Undo” takes back what you did, step by step." },
];
/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEYS = [
  {
    title: "Label (the Classes page changes keys)",
    rows: [
      ["1", "label the image with the class of that key; with “One label”, the next image appears"],
      [["Shift", "1"], "label it, and stay on this image"],
      [["Alt", "1"], "mark the class of that key absent"],
      ["-", "mark the next class unsure"],
      ["1", "again, where the class is labeled already: take the label back (the same for Alt and -)"],
      [["/", "Ctrl+K"], "find a class by name: Enter labels it, Shift+Enter labels it and stays; Enter with nothing typed closes the finder"],
      ["Letters", "typed quickly, as a class name begins: open the finder with them, and label nothing"],
      [["/", "?"], "in the finder: what the selected class means, with examples"],
      ["Enter", "nothing else here: mark every unanswered class absent"],
      ["=", "also label it with the classes of the previous image in its folder; stay on this image"],
      [".", "“One label” or “All labels”: with the latter, class keys mark and unmark, and Enter goes on"],
    ],
  },
  {
    title: "Go on, go back",
    rows: [
      [" ", "skip: the image comes back later; if you have labeled it, just go on"],
      [["ArrowLeft", "ArrowRight"], "previous image, next image"],
      [["[", "]"], "previous image, next image in its folder (by file name, or by capture time in that order)"],
      FIND_ROW,
      ["Esc", "back to the page that opened this image"],
      [",", "flag the image with a note"],
      HISTORY_ROW,
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      [["Shift", "Backspace"], "redo (also Ctrl+Y)"],
      ["?", "this list (also F1)"],
    ],
  },
  { title: "Look closer", rows: STAGE_KEYS },
];
