// @ts-check
/**
 * The size of tiles, which is the person's: kept in this browser, the same on Grid and Autopilot and in every project.
 * How many tiles a grid has follows from it and from the window (grid_layout.js).
 */

import { el, formatCount } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

const STORAGE_KEY = "annotator:tiles";
/** CSS pixels that a tile is high, at least; it is wider than that by TILE_RATIO of grid_layout.js. */
const TILE_PIXELS = [120, 150, 190, 240, 320];
export const MIN_TILE_PIXELS = TILE_PIXELS[0];

export class TileSize {
  constructor() {
    const size = readSetting(STORAGE_KEY);
    /** @type {number | null} one of TILE_PIXELS; null: not chosen yet, the usual number of tiles fills the window */
    this.chosen = TILE_PIXELS.includes(size) ? size : null;
  }

  /** The sizes from here on, the next one first. @param {1 | -1} way larger, smaller @param {number} now of a tile on screen */
  listSizes(way, now) {
    const from = this.chosen ?? now;
    return (way > 0 ? TILE_PIXELS : [...TILE_PIXELS].reverse()).filter((step) => way * (step - from) > 0);
  }

  /** @param {number} size */
  choose(size) {
    this.chosen = size;
    writeSetting(STORAGE_KEY, size);
  }
}

/** The buttons: smaller, larger, and between them how many tiles the next grid has at most. */
export class SizeButtons {
  /** @param {(way: 1 | -1) => void} onStep */
  constructor(onStep) {
    const button = (/** @type {1 | -1} */ way, /** @type {string} */ name, /** @type {string} */ key) =>
      el("button", { type: "button", "aria-label": name, title: `${name} (${key})`, "aria-keyshortcuts": key, onclick: () => onStep(way) }, way > 0 ? "+" : "−");
    this.smaller = button(-1, "Smaller tiles", "-");
    this.larger = button(1, "Larger tiles", "+");
    this.tiles = el("span", { class: "count", title: "The next grid has at most so many" });
    this.element = el("div", { class: "joined sizes", role: "group", "aria-label": "Tile size" }, this.smaller, this.tiles, this.larger);
  }

  /** @param {import("./grid_layout.js").GridLayout} layout */
  show(layout) {
    this.tiles.textContent = formatCount(layout.room, "tile");
    this.smaller.disabled = layout.next(-1) == null;
    this.larger.disabled = layout.next(1) == null;
  }
}
