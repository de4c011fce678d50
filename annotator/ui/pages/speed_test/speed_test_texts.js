// @ts-check
/** What the speed test says. */

import { UNSURE_HELP_ROW } from "../grid/grid_texts.js";
import { formatCount } from "../shared/dom.js";

const TASK_TEXTS = {
  grid: "Mark the right ones, then save all.",
  image: "Mark the classes that are on the image, then save all.",
  click: "Label one class that is on the image.",
};

/** What is asked. @param {import("./speed_test.js").Task} task @param {{name: string}[]} classes */
export function describeQuestion({ kind, grid }, classes) {
  if (kind === "grid") return `Which of ${formatCount(grid.tiles.length, "image")} show '${classes[0]?.name}'?`;
  return kind === "image" ? `Which of these ${formatCount(classes.length, "class", "classes")}?` : "One class of this image";
}

/** What there is to do. @param {import("./speed_test.js").Task} task */
export function describeTask({ kind }) {
  return TASK_TEXTS[kind];
}

/** @type {{title: string, rows: [string | string[], string][]}[]} */
export const KEY_HELP = [
  {
    title: "Everywhere",
    rows: [
      ["Enter", "begin; in a task, save what is on screen: the next task appears"],
      ["Esc", "stop; the task is asked again when you go on"],
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
      ["PageUp", "enlarge that tile; Page Down or Esc closes it"],
    ],
  },
  {
    title: "One image",
    rows: [
      ["1", "mark or unmark the class with that key; where one class is asked for, that completes the task"],
      ["-", "mark the next class unsure"],
      [["/", "Ctrl+K"], "find a class by name"],
    ],
  },
];
