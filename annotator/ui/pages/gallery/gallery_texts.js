// @ts-check
/** What the gallery tells a person about itself. */

import { FIND_ROW } from "../shared/fix_link.js";
import { HISTORY_ROW } from "../shared/history.js";
import { formatCount } from "../shared/dom.js";
import { describeState } from "./answer_panel.js";

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Select",
    rows: [
      [["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "move from image to image"],
      [" ", "select the image, or take it out of the selection"],
      [["Shift", "ArrowRight"], "select on to the next image; with any key that moves"],
      ["Ctrl+A", "select all images of the filter, 5,000 at most"],
      ["Escape", "clear the selection"],
    ],
  },
  {
    title: "Change the selected images",
    rows: [
      ["c", "choose classes: Enter marks one present, again absent, unsure, unanswered"],
      ["Ctrl+Enter", "set them on all selected images"],
      [",", "flag all selected images, or set them aside"],
      ["k", "keep the image: set its twins aside"],
      ["t", "give your answers to its twins"],
      ["Backspace", "undo all of it (also Ctrl+Z)"],
      ["Shift+Backspace", "redo (also Ctrl+Y)"],
      FIND_ROW,
      ["Enter", "open the image in Annotate; so does a double click"],
    ],
  },
  {
    title: "Find and look",
    rows: [
      ["/", "filter by a class"],
      ["s", "images like the selected one first, of all that the filter shows"],
      ["b", "bars of a fact: how many images have each value; a bar filters by it"],
      ["f", "find by words, or like a picture from elsewhere or a part of the selected image"],
      ["v", "a varied few of the images that come first, as a grid"],
      [["Ctrl+G", "g"], "go to an image by its number"],
      [["Home", "End"], "first image, last image"],
      [["PageUp", "PageDown"], "a screen up, a screen down"],
      [["+", "-"], "larger, smaller images"],
      HISTORY_ROW,
      ["r", "update the list with answers given since"],
    ],
  },
];

export const PAGE_HINTS = [
  { at: ".work .left", by: "select", text: "Click or drag to select images. Double-click opens one in Annotate." },
  { at: ".panel", by: "decide", text: "Set classes on all selected images at once." },
  { at: "[aria-label=Session]", by: "undo", text: "Backspace undoes a whole batch; ? lists all keys." },
];

/** What was set, "fox present, deer absent on 12 images". @param {Map<number, number | null>} states @param {number} count @param {Map<number, string>} names */
export function describeChange(states, count, names) {
  const said = [...states].map(([id, state]) => `${names.get(id) ?? "a class"} ${describeState(state)}`);
  const shown = said.length > 3 ? `${said.slice(0, 3).join(", ")} and ${said.length - 3} more` : said.join(", ");
  return `${shown} on ${formatCount(count, "image")}`;
}
