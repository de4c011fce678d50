// @ts-check
/**
 * Heat maps in the grid, while Shift is held and no longer: of the tile under the pointer, or of the one moved to. A
 * pointer that rests on a tile looks at the tile; the heat map is only fetched then. Where models from elsewhere drew
 * boxes, these are shown; Shift once more on the same tile shows the heat map.
 */

import { boxDrawing, boxesInWords } from "../shared/boxes.js";
import { capital } from "../shared/dom.js";

const FETCH = 100; // milliseconds the pointer rests on a tile until its heat map is asked for

export class Peek {
  /**
   * @param {{heatmaps: import("../shared/heatmaps.js").Heatmaps, enlarged: import("./enlarged.js").Enlarged,
   *          view: () => import("./tiles.js").Tiles | null, say: (text: string) => void, unsay: (text: string) => void}} options
   *   unsay: what was said goes, unless something else has been said since
   */
  constructor({ heatmaps, enlarged, view, say, unsay }) {
    this.heatmaps = heatmaps;
    this.enlarged = enlarged;
    this.view = view;
    this.say = say;
    this.unsay = unsay;
    /** @type {number | null} the tile under the pointer */
    this.pointed = null;
    this.held = false;
    /** @type {import("./tiles.js").Tile | null} the tile whose boxes were shown when Shift was last held */
    this.boxed = null;
    this.again = false; // Shift is held for the tile whose boxes were shown before
    this.timer = 0;
    this.excuse = ""; // the message about the heat map
    /** @type {{view: import("./tiles.js").Tiles, index: number} | null} where a heat map lies */
    this.lying = null;
  }

  /** @param {PointerEvent | null} event null: the pointer has left */
  point(event) {
    const tile = /** @type {HTMLElement | null} */ (event && /** @type {Element} */ (event.target).closest(".tile"));
    const index = tile && event.pointerType !== "touch" ? Number(tile.dataset.index) : null;
    if (index === this.pointed) return;
    this.forget();
    this.pointed = index;
    this.show();
    if (index == null) return;
    this.timer = window.setTimeout(() => {
      const spot = this.#spot(index);
      if (spot) this.heatmaps.want([spot]);
    }, FETCH);
  }

  /** Ignore the pointer's place: the person moves by keys, or the grid is gone. */
  forget() {
    clearTimeout(this.timer);
    this.pointed = null;
  }

  /** @param {boolean} on while Shift is held */
  hold(on) {
    if (this.held === on) return;
    this.held = on;
    const view = on ? this.view() : null;
    const tile = view && view.grid.tiles[this.#wanted(view) ?? -1];
    this.again = Boolean(tile) && tile === this.boxed;
    if (on) this.boxed = null;
    this.show();
  }

  /** Show the heat map that is asked for, and no other. */
  show() {
    const view = this.view();
    const index = view ? this.#wanted(view) : null;
    const spot = index == null ? null : this.#spot(index);
    const tile = index == null ? null : view.grid.tiles[index];
    const boxes = tile && !view.grid.hidesPredictions && !(this.again && spot) ? tile.boxes ?? [] : [];
    if (boxes.length) this.boxed = tile;
    const map = spot && !boxes.length ? this.heatmaps.get(spot) : null;
    const large = this.enlarged.isOpen;
    const words = boxesInWords(boxes);
    const picture = words ? boxDrawing(boxes, tile, large ? words : "") : map?.picture ?? null;
    if (this.lying && (large || this.lying.view !== view || this.lying.index !== index)) {
      this.lying.view.heat(this.lying.index, null);
      this.lying = null;
    }
    if (large) this.enlarged.heat(picture, words || (map?.note ?? ""));
    else if (view && index != null) {
      view.heat(index, picture);
      this.lying = { view, index };
    }
    if (this.held && index != null && !picture) {
      const none = view.grid.hidesPredictions ? "this is an audit" : "the model does not know this class yet";
      const why = spot ? map.problem : none;
      this.#excuse(why ? `No heat map: ${why}.` : "Drawing the heat map...");
    } else if (this.held && words) this.#excuse(`${capital(words)}.`);
    else if (this.held && map?.note) this.#excuse(`${map.note}.`);
    else if (this.excuse) {
      this.unsay(this.excuse);
      this.excuse = "";
    }
  }

  /** @param {string} text */
  #excuse(text) {
    this.excuse = text;
    this.say(text);
  }

  /** @param {import("./tiles.js").Tiles} view */
  #wanted({ grid }) {
    if (!this.held) return null;
    const index = this.enlarged.isOpen ? grid.at : this.pointed ?? grid.at;
    return index < grid.tiles.length ? index : null;
  }

  /** @param {number} index */
  #spot(index) {
    const grid = this.view()?.grid;
    const tile = grid?.tiles[index];
    if (!tile || grid.hidesPredictions || grid.run == null || tile.probability == null) return null;
    return { run_id: grid.run, image_id: tile.id, class_id: grid.class };
  }
}
