// @ts-check
/**
 * Heat maps in the grid, while Shift is held and no longer: of the tile under the pointer, or of the one moved to. A
 * pointer that rests on a tile looks at the tile; the heat map is only fetched then. Where models from elsewhere drew
 * boxes, these are shown; Shift once more on the same tile shows the heat map.
 */

import { describeBoxes, drawBoxes } from "../shared/boxes.js";
import { capitalize } from "../shared/dom.js";

const HOVER_MILLISECONDS = 100; // milliseconds the pointer rests on a tile until its heat map is asked for

export class HeatmapPeek {
  /**
   * @param {{heatmaps: import("../shared/heatmaps.js").HeatmapLoader, tileZoom: import("./tile_zoom.js").TileZoom,
   *          view: () => import("./grid_tiles.js").GridTiles | null, say: (text: string) => void, unsay: (text: string) => void}} options
   *   unsay: what was said goes, unless something else has been said since
   */
  constructor({ heatmaps, tileZoom, view, say, unsay }) {
    this.heatmaps = heatmaps;
    this.tileZoom = tileZoom;
    this.view = view;
    this.say = say;
    this.unsay = unsay;
    /** @type {number | null} the tile under the pointer */
    this.pointed = null;
    this.held = false;
    /** @type {import("./grid_tiles.js").Tile | null} the tile whose boxes were shown when Shift was last held */
    this.boxed = null;
    this.again = false; // Shift is held for the tile whose boxes were shown before
    this.timer = 0;
    this.excuse = ""; // the message about the heat map
    /** @type {{view: import("./grid_tiles.js").GridTiles, index: number} | null} where a heat map lies */
    this.lying = null;
  }

  /** @param {PointerEvent | null} event null: the pointer has left */
  onPointerMove(event) {
    const tile = /** @type {HTMLElement | null} */ (event && /** @type {Element} */ (event.target).closest(".tile"));
    const index = tile && event.pointerType !== "touch" ? Number(tile.dataset.index) : null;
    if (index === this.pointed) return;
    this.forget();
    this.pointed = index;
    this.show();
    if (index == null) return;
    this.timer = window.setTimeout(() => {
      const spot = this.#getSpot(index);
      if (spot) this.heatmaps.want([spot]);
    }, HOVER_MILLISECONDS);
  }

  /** Ignore the pointer's place: the person moves by keys, or the grid is gone. */
  forget() {
    clearTimeout(this.timer);
    this.pointed = null;
  }

  /** @param {boolean} on while Shift is held */
  setHeld(on) {
    if (this.held === on) return;
    this.held = on;
    const view = on ? this.view() : null;
    const tile = view && view.grid.tiles[this.#getIndex(view) ?? -1];
    this.again = Boolean(tile) && tile === this.boxed;
    if (on) this.boxed = null;
    this.show();
  }

  /** Show the heat map that is asked for, and no other. */
  show() {
    const view = this.view();
    const index = view ? this.#getIndex(view) : null;
    const spot = index == null ? null : this.#getSpot(index);
    const tile = index == null ? null : view.grid.tiles[index];
    const boxes = tile && !view.grid.hidesPredictions && !(this.again && spot) ? tile.boxes ?? [] : [];
    if (boxes.length) this.boxed = tile;
    const map = spot && !boxes.length ? this.heatmaps.get(spot) : null;
    const large = this.tileZoom.isOpen;
    const words = describeBoxes(boxes);
    const picture = words ? drawBoxes(boxes, tile, large ? words : "") : map?.picture ?? null;
    if (this.lying && (large || this.lying.view !== view || this.lying.index !== index)) {
      this.lying.view.showHeatmap(this.lying.index, null);
      this.lying = null;
    }
    if (large) this.tileZoom.showHeatmap(picture, words || (map?.note ?? ""));
    else if (view && index != null) {
      view.showHeatmap(index, picture);
      this.lying = { view, index };
    }
    if (this.held && index != null && !picture) {
      const none = view.grid.hidesPredictions ? "this is an audit" : "the model does not know this class yet";
      const why = spot ? map.problem : none;
      this.#showReason(why ? `No heat map: ${why}.` : "Drawing the heat map...");
    } else if (this.held && words) this.#showReason(`${capitalize(words)}.`);
    else if (this.held && map?.note) this.#showReason(`${map.note}.`);
    else if (this.excuse) {
      this.unsay(this.excuse);
      this.excuse = "";
    }
  }

  /** @param {string} text */
  #showReason(text) {
    this.excuse = text;
    this.say(text);
  }

  /** @param {import("./grid_tiles.js").GridTiles} view */
  #getIndex({ grid }) {
    if (!this.held) return null;
    const index = this.tileZoom.isOpen ? grid.at : this.pointed ?? grid.at;
    return index < grid.tiles.length ? index : null;
  }

  /** @param {number} index */
  #getSpot(index) {
    const grid = this.view()?.grid;
    const tile = grid?.tiles[index];
    if (!tile || grid.hidesPredictions || grid.run == null || tile.probability == null) return null;
    return { run_id: grid.run, image_id: tile.id, class_id: grid.class };
  }
}
