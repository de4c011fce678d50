// @ts-check
/** What Autopilot tells a person about itself. */

import { OVERRULE_ROW } from "../shared/contradictions.js";
import { formatCount } from "../shared/dom.js";
import { FIND_ROW, FIX_ROW } from "../shared/fix_link.js";
import { HISTORY_ROW } from "../shared/history.js";
import { LABEL_MODE_ROW } from "../shared/label_mode.js";
import { STAGE_KEYS } from "../shared/image_stage.js";
import { STRIP_KEYS } from "../shared/event_strip.js";
import { EVENT_HELP_ROW, UNSURE_HELP_ROW } from "../grid/grid_texts.js";

const MARK_TEXTS = { yes: "Mark the wrong ones, then save all.", no: "Mark the right ones, then save all." };
const HIDDEN_TEXTS = {
  again: " Answered before; predictions are hidden.",
  audit: " A random sample for the certificate; predictions are hidden.",
};
const EVERY_CLASS_TEXT = "Mark every class you see. All others are saved as absent.";
const IMAGE_TEXTS = { image: EVERY_CLASS_TEXT, reading: `${EVERY_CLASS_TEXT} What others and the model say is hidden.` };

const ALL_LABELS_LINE = "Label this image";
const LABEL_MODE_TEXTS = {
  one: "One label is enough; the model asks for the rest.",
  all: "Mark every class you see, then Enter. Skip keeps what you marked.",
};

/**
 * What there is to do, as the grid begins now, or as labels are given.
 * @param {import("./autopilot.js").Action} action @param {"one" | "all"} way
 */
export function describeTask(action, way) {
  const { kind, grid, preset } = action;
  if (kind === "click") return LABEL_MODE_TEXTS[way];
  if (kind === "image" && preset.length) {
    return `Check ${formatCount(preset.length, "guess", "guesses")} (dashed). Enter saves them as your answers, all others as absent.`;
  }
  return grid ? MARK_TEXTS[grid.start] + (HIDDEN_TEXTS[isRelabel(action) ? "again" : kind] ?? "") : IMAGE_TEXTS[kind];
}

/**
 * The line above it: the server's, whose time is that of one label.
 * @param {import("./autopilot.js").Action} action @param {"one" | "all"} way
 */
export function describeLine({ kind, line }, way) {
  return kind === "click" && way === "all" ? ALL_LABELS_LINE : line;
}

/** Whether it settles nothing: its tiles have answers, which are asked once more. @param {import("./autopilot.js").Action} action */
export function isRelabel({ kind, decided }) {
  return kind === "grid" && !decided;
}

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Everywhere",
    rows: [
      ["Enter", "save what is on screen as it is marked; the next task appears"],
      [".", "skip this task (also Space on one image)"],
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
      OVERRULE_ROW,
      FIND_ROW,
      ["?", "this list (also F1)"],
    ],
  },
  {
    title: "Many images, one class",
    rows: [
      ["1", "toggle the tile with that key: yes / no (also a click)"],
      UNSURE_HELP_ROW,
      [["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "move from tile to tile"],
      [" ", "toggle the selected tile"],
      ["\\", "start with all Yes, or with all No"],
      ["Shift", "hold: heat map or boxes of the tile; again switches"],
      [";", "that tile's history and comments (unless answers are hidden)"],
      EVENT_HELP_ROW,
      ["PageUp", "enlarge that tile; Page Down or Escape closes it"],
      [["-", "+"], "smaller tiles, larger tiles: the next grids have as many as fit"],
    ],
  },
  {
    title: "One image",
    rows: [
      ["1", "mark or unmark that class (one class asked, “One label”: also go on)"],
      ["Enter", "save all as marked: guesses (dashed) become your answers"],
      [["Shift", "1"], "label the class and stay; again takes it back"],
      [["Alt", "1"], "mark the class absent"],
      ["-", "mark the next class unsure"],
      [["/", "Ctrl+K"], "find a class by name: Enter takes it"],
      LABEL_MODE_ROW,
      HISTORY_ROW,
      FIX_ROW,
      ...STAGE_KEYS,
    ],
  },
  { title: "One image of an event", rows: STRIP_KEYS },
];

export const PAGE_HINTS = [
  { at: ".what", by: "decide", text: "The most useful task comes next. Its line says what to do." },
  { at: "[aria-keyshortcuts='.']:not([hidden] *)", by: "skip", text: "Press . to skip a task." },
  { at: "[aria-label=Session]", by: "undo", text: "Backspace undoes; ? lists all keys." },
];
