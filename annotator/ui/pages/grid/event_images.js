// @ts-check
/**
 * The single images of a tile that stands for an event: they are shown on demand, and each may be marked otherwise. What
 * nobody has marked here is as the tile is.
 */

import { el, formatCount, kbd } from "../shared/dom.js";
import { GridTiles, TILE_KEYS, UNSURE_KEY } from "./grid_tiles.js";

export const EVENT_KEY = ",";

export class EventImages {
  /**
   * @param {{session: import("../shared/session.js").Session, onClose: () => void}} options  onClose: marks may be others
   */
  constructor({ session, onClose }) {
    this.session = session;
    /** @type {GridTiles | null} */
    this.view = null;
    this.title = el("h2", { id: "burst-title" });
    this.place = el("div", { class: "burst-tiles" });
    this.dialog = el("dialog", { class: "burst-dialog", tabindex: "-1", "aria-labelledby": "burst-title" },
      el("div", { class: "bar" }, this.title,
        el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.dialog.close() }, "Back", kbd("Esc"))),
      this.place);
    this.dialog.addEventListener("close", () => {
      this.view?.close();
      this.view = null;
      this.place.replaceChildren();
      onClose();
    });
  }

  get isOpen() {
    return this.dialog.open;
  }

  /** @param {import("./grid_tiles.js").Grid} grid @param {import("./grid_tiles.js").Tile} tile of it @param {string} name of the class */
  open(grid, tile, name) {
    tile.members ??= (tile.others ?? []).map(([id, probability, file]) => ({
      id, name: file, width: 1, height: 1, probability, state: null, by: null,
    }));
    for (const member of tile.members) if (!member.touched) member.mark = tile.mark;
    const { class: class_, run, hidesPredictions } = grid;
    const tiles = [tile, ...tile.members];
    this.view = new GridTiles({ id: `${grid.id} ${tile.id}`, class: class_, run, share: null, start: grid.start, tiles, hidesPredictions, at: 0 }, {
      url: (path) => this.session.api.url(path),
      name,
      annotator: this.session.data.annotator,
      onPress: (index) => this.press(index),
      onEnlarge: () => {},
    });
    this.view.appear(true);
    this.title.replaceChildren(`Event of ${formatCount(tiles.length, "image")}: `, el("bdi", {}, name), "?");
    this.place.replaceChildren(this.view.element);
    this.view.element.addEventListener("click", (event) => {
      const box = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".tile"));
      if (box && event.detail) this.press(Number(box.dataset.index));
    });
    this.dialog.showModal();
    this.view.focus();
  }

  /** @param {number} index */
  press(index) {
    if (!this.view || index >= this.view.grid.tiles.length) return;
    this.#mark(index, () => this.view?.press(index));
  }

  /** @param {number} index @param {() => void} act */
  #mark(index, act) {
    if (!this.session.pressGuard.allows("mark")) return;
    this.view?.moveTo(index);
    act();
    if (this.view) this.view.grid.tiles[index].touched = true; // also where it is as the tile is: the person has said so
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    const { view } = this;
    if (!view || key === "Tab" || key === "Shift") return false;
    const columns = getComputedStyle(view.element).gridTemplateColumns.split(" ").length;
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
    const index = TILE_KEYS.indexOf(key);
    if (["Escape", "Enter", "PageDown", EVENT_KEY].includes(key)) event.repeat || this.dialog.close();
    else if (move) {
      if (view.grid.tiles[view.grid.at + move]) view.moveTo(view.grid.at + move);
      view.focus();
    } else if (event.repeat) return true;
    else if (key === " ") this.press(view.grid.at);
    else if (key === UNSURE_KEY) this.#mark(view.grid.at, () => view.toggleUnsure(view.grid.at));
    else if (index >= 0) this.press(index);
    return true;
  }
}
