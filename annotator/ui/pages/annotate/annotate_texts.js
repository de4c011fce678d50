// @ts-check
/** What the help of the Annotate page lists, and what a first visit begins with. */

import { OVERRULE_ROW } from "../shared/contradictions.js";
import { FIND_ROW } from "../shared/fix_link.js";
import { HISTORY_ROW } from "../shared/history.js";
import { LABEL_MODE_ROW } from "../shared/label_mode.js";
import { STAGE_KEYS } from "../shared/image_stage.js";
import { REST_ROW, STRIP_KEYS } from "../shared/event_strip.js";

/** What pressing a class does, as the page begins. */
const KEY_TEXTS = {
  one: "Press a key: one label is enough; the model asks for the rest.",
  all: "Press a key to mark a class, again to unmark it. Enter goes on.",
};
const TOUCH_TEXTS = {
  one: "Tap a class: one label is enough; the model asks for the rest.",
  all: "Tap a class to mark it, again to unmark it. “Nothing else here” goes on.",
};

/** @param {"one" | "all"} mode as the server has it for this person */
export const buildHints = (mode) => [
  { at: ".classes", by: "decide", text: KEY_TEXTS[mode], touch: TOUCH_TEXTS[mode] },
  { at: ".finder", by: "find", text: "Press / and type to find any class by name.", touch: "“Find a class” finds any class by its name." },
  { at: "[aria-label=Session]", by: "undo", text: "Backspace undoes; ? lists all keys.", touch: "“Undo” undoes, step by step." },
];
/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Label (the Classes page changes keys)",
    rows: [
      ["1", "label the image with the class of that key; with “One label”, the next image appears"],
      [["Shift", "1"], "label it, and stay on this image"],
      [["Alt", "1"], "mark the class of that key absent"],
      ["-", "mark the next class unsure"],
      ["1", "the same key again: take the label back (also Alt, -)"],
      [["/", "Ctrl+K"], "find a class: Enter labels, Shift+Enter labels and stays"],
      ["Letters", "a class name typed quickly: opens the finder, labels nothing"],
      [["/", "?"], "in the finder: what the selected class means, with examples"],
      ["Enter", "nothing else here: mark every unanswered class absent; where nothing is present, the image is empty"],
      ["=", "label it like the previous image in its folder, and stay"],
      OVERRULE_ROW,
      LABEL_MODE_ROW,
    ],
  },
  {
    title: "Go on, go back",
    rows: [
      [".", "skip (also Space): the image comes back later; once labeled, just go on"],
      [["ArrowLeft", "ArrowRight"], "previous image, next image"],
      [["[", "]"], "previous image, next image in its folder (by name or time)"],
      FIND_ROW,
      ["Esc", "back to the page that opened this image"],
      [",", "flag the image with a note"],
      HISTORY_ROW,
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      [["Shift", "Backspace"], "redo (also Ctrl+Y)"],
      ["?", "this list (also F1)"],
    ],
  },
  { title: "Events", rows: [STRIP_KEYS[0], REST_ROW, ...STRIP_KEYS.slice(1)] },
  { title: "Look closer", rows: STAGE_KEYS },
];
