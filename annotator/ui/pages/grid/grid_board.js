// @ts-check
/**
 * The place where grids lie: the one on screen with its cursor, its marks by key and pointer, heat maps over it, one of
 * its tiles enlarged; and, unseen, the one that comes next. Deciding a grid is up to the page.
 */

import { GridPrerender } from "./grid_prerender.js";
import { UnseenTiles } from "./unseen_tiles.js";
import { EVENT_KEY, EventImages } from "./event_images.js";
import { TileZoom } from "./tile_zoom.js";
import { openInAnnotate } from "../shared/fix_link.js";
import { HISTORY_KEY } from "../shared/history.js";
import { HeatmapLoader } from "../shared/heatmaps.js";
import { GridLayout } from "./grid_layout.js";
import { HeatmapPeek } from "./heatmap_peek.js";
import { SizeButtons, TileSize } from "./tile_size.js";
import { GridTiles, TILE_KEYS, UNSURE_KEY, buildSkeleton, discardElements } from "./grid_tiles.js";
import { el, onDraw } from "../shared/dom.js";
import { chooseSaveKind } from "../shared/press_guard.js";
import { makePaintable } from "./tile_painting.js";

const TILE_COUNT_MULTIPLE = 6; // without a chosen size, grids are laid out for a multiple of so many tiles, which has many divisors
const MAX_BUILT_GRIDS = 12; // decided grids whose elements are kept for an undo

/** @typedef {import("./grid_tiles.js").Grid} Grid */

export class GridBoard {
  /**
   * @param {{session: import("../shared/session.js").Session, usual: number | null, next: () => Grid | null | undefined,
   *          onMarks: (view: GridTiles) => void, onSize: () => void, onBelow: (count: number) => void, onFix?: (id: number) => void}} options
   *   usual: tiles of a grid while no size of tiles is chosen (grid_layout.js); next: the grid that Enter would bring, as far as
   *   it is known; onMarks: the person has marked something; onSize: the next grids are to have another number of tiles;
   *   onBelow: so many tiles on screen have not been scrolled to yet; onFix: an image is to be opened in Annotate
   */
  constructor({ session, usual, next, onMarks, onSize, onBelow, onFix = openInAnnotate }) {
    const { api, root } = session;
    this.session = session;
    this.onMarks = onMarks;
    this.onSize = onSize;
    this.usual = usual;
    /** @type {GridTiles | null} what is on screen */
    this.view = null;
    /** Whether it has been drawn: keys are ignored until the person can have seen the tiles. */
    this.seen = false;
    /** @type {object[]} */
    this.built = [];
    this.heatmaps = new HeatmapLoader(api, () => this.peek.show(), (id) => session.names.get(id) ?? "");
    this.tileZoom = new TileZoom({
      url: (path) => api.url(path),
      onMark: (state) => this.mark(this.view.grid.at, state),
      onTurn: () => this.press(this.view.grid.at),
      onUnsure: () => this.toggleUnsure(this.view.grid.at),
      onMove: (by) => this.enlarge(this.view.grid.at + by),
      onClose: () => this.peek.show(),
      onHistory: () => this.session.showHistory(),
      onFix,
    });
    this.peek = new HeatmapPeek({
      heatmaps: this.heatmaps,
      tileZoom: this.tileZoom,
      view: () => this.view,
      say: (text) => session.showMessage(text),
      unsay: (text) => session.clearMessage(text),
    });
    this.eventImages = new EventImages({ session, onClose: () => this.#onEventClose() });
    this.host = el("div", { class: "host" });
    this.host.addEventListener("pointerover", (event) => this.peek.onPointerMove(event));
    this.host.addEventListener("pointerleave", () => this.peek.onPointerMove(null));
    this.host.addEventListener("pointerdown", () => this.host.classList.remove("keyed"));
    this.stopPainting = makePaintable(this.host, root, {
      press: (index) => this.press(index),
      paint: (index, state) => this.mark(index, state),
      on: () => this.view,
    });
    this.unseenTiles = new UnseenTiles(onBelow);
    this.tileSize = new TileSize();
    this.sizeButtons = new SizeButtons((way) => this.resize(way));
    this.layout = new GridLayout(this.host, this.tileSize, usual, () => this.sizeButtons.show(this.layout));
    // Where the page scrolls, not all of a grid is in sight anyway.
    this.prerender = new GridPrerender(this.host, () => {
      const view = this.view && !this.layout.scrolls ? next()?.view : null;
      return view?.complete && this.layout.fitsAlike(this.#countRoom(view)) ? view : null;
    });
  }

  close() {
    this.stopPainting();
    this.layout.close();
    this.unseenTiles.close();
    this.heatmaps.close();
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} whether the key was about the tiles */
  key(key, event) {
    if (key === "Shift") {
      this.peek.setHeld(true);
      return true;
    }
    if (this.tileZoom.isOpen) return this.tileZoom.key(key, event);
    if (this.eventImages.isOpen) return this.eventImages.key(key, event);
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.layout.columns, ArrowDown: this.layout.columns };
    const command = {
      " ": () => this.view && this.press(this.view.grid.at),
      [UNSURE_KEY]: () => this.view && this.toggleUnsure(this.peek.pointed ?? this.view.grid.at),
      "\\": () => this.view && this.begin(this.view.grid.start === "yes" ? "no" : "yes"),
      [HISTORY_KEY]: () => this.view && this.session.showMessage("Earlier answers are hidden here."),
      [EVENT_KEY]: () => this.view && this.showEvent(this.peek.pointed ?? this.view.grid.at),
      PageUp: () => this.view && this.enlarge(this.peek.pointed ?? this.view.grid.at),
      "-": () => this.resize(-1),
      "+": () => this.resize(1),
      "=": () => this.resize(1),
    }[key];
    const tile = TILE_KEYS.indexOf(key);
    if (moves[key]) this.moveBy(moves[key]);
    else if (command) event.repeat || command();
    else if (tile >= 0) event.repeat || this.pressKey(tile);
    else return false;
    return true;
  }

  /** A key was let go. @param {string} key */
  onKeyUp(key) {
    if (key === "Shift") this.peek.setHeld(false);
  }

  /**
   * Whether a press applies to the tiles: they are on screen and have been drawn, and it is no repeat of one before.
   * @param {import("../shared/press_guard.js").Kind} kind
   */
  acceptsPress(kind) {
    return this.isLoaded() && this.session.pressGuard.allows(kind, this.seen);
  }

  /** What a press that saves the grid saves; null where the press does not. */
  listSaved() {
    if (!this.isLoaded()) return null;
    const [cells, copies] = [this.view.cells(), this.view.copies()];
    return this.acceptsPress(chooseSaveKind(cells.length + copies.length)) ? { cells, copies } : null;
  }

  /** Whether there are tiles; says so while they are on their way. */
  isLoaded() {
    if (!this.view && this.host.querySelector(".skeleton")) this.session.showMessage("Loading images...");
    return Boolean(this.view);
  }

  /** The image whose history may be seen: of the enlarged tile, the one under the pointer, or the selected one. */
  get historyImage() {
    const grid = this.view?.grid;
    if (!grid || grid.hidesPredictions) return null;
    return grid.tiles[this.tileZoom.isOpen ? grid.at : this.peek.pointed ?? grid.at];
  }

  /** Turn a tile. @param {number} index @returns {number | null} what it is now */
  press(index) {
    if (!this.acceptsPress("mark") || index >= this.view.grid.tiles.length) return null;
    this.view.moveTo(index);
    this.view.press(index);
    this.#onMark(index);
    return this.view.grid.tiles[index].mark;
  }

  /** Turn the tile with a key: from then on it is the one that other keys are about. @param {number} index */
  pressKey(index) {
    this.peek.forget();
    this.press(index);
  }

  /** Mark a tile unsure, or take that back. @param {number} index */
  toggleUnsure(index) {
    if (!this.acceptsPress("mark") || index >= this.view.grid.tiles.length) return;
    this.view.moveTo(index);
    this.view.toggleUnsure(index);
    this.#onMark(index);
  }

  /** @param {number} index @param {number} state */
  mark(index, state) {
    if (!this.acceptsPress("mark") || this.view.grid.tiles[index]?.mark === state) return;
    this.view.mark(index, state);
    this.#onMark(index);
  }

  /** @param {number} by */
  moveBy(by) {
    if (!this.view) return;
    const { grid } = this.view;
    if (grid.at + by < 0 || grid.at + by >= grid.tiles.length) return;
    this.host.classList.add("keyed");
    this.peek.forget();
    this.view.moveTo(grid.at + by);
    this.view.focus();
    this.peek.show();
  }

  /** @param {"yes" | "no"} start */
  begin(start) {
    if (!this.view || this.view.grid.start === start) return;
    this.view.turn();
    this.onMarks(this.view);
  }

  /** @param {number} index */
  enlarge(index) {
    if (!this.isLoaded() || !this.seen || index < 0 || index >= this.view.grid.tiles.length) return;
    this.view.moveTo(index);
    this.tileZoom.show(this.view.grid.tiles[index], this.view.parts[index].picture, this.view.name, Boolean(this.view.grid.hidesPredictions), this.view.isGuess(index));
    this.peek.show();
  }

  /** Show the single images that a tile stands for. @param {number} index */
  showEvent(index) {
    const tile = this.view?.grid.tiles[index];
    if (!tile || !this.isLoaded() || !this.seen) return;
    this.view.moveTo(index);
    if (tile.others?.length) this.eventImages.open(this.view.grid, tile, this.view.name);
    else this.session.showMessage("This tile is one image.");
  }

  /** The tile may be marked otherwise now. */
  #onEventClose() {
    const { view } = this;
    if (!view) return;
    view.mark(view.grid.at, view.grid.tiles[view.grid.at].mark ?? -1);
    this.#onMark(view.grid.at);
    view.focus();
  }

  /** Larger or smaller tiles: what is on screen stays, with its marks; the grids that come next have as many as fit. @param {1 | -1} way */
  resize(way) {
    const size = this.layout.next(way);
    if (size == null) return;
    this.tileSize.choose(size);
    this.layout.arrange(this.layout.count);
    this.sizeButtons.show(this.layout);
    this.onSize();
    this.prerender.prepare();
  }

  /** Build a grid and decode its pictures, before it is needed. @param {Grid} grid @param {string} name of its class */
  load(grid, name) {
    grid.view ??= new GridTiles(grid, {
      annotator: this.session.data.annotator,
      url: (path) => this.session.api.url(path),
      name,
      onPress: (index) => this.press(index),
      onEnlarge: (index) => this.enlarge(index),
      onBurst: (index) => this.showEvent(index),
    });
    return grid.view.loaded.then(() => this.prerender.prepare());
  }

  /** Keep a decided grid's elements for undo; of the oldest, only the answers. @param {any} item @param {(item: any) => boolean} isHeld */
  keep(item, isHeld) {
    this.built = [...this.built.filter((other) => other !== item), item];
    if (this.built.length <= MAX_BUILT_GRIDS) return;
    const old = this.built.shift();
    if (!isHeld(old)) discardElements(old);
  }

  /** Put a grid on screen. Keys apply to it from the frame in which it is drawn. @param {GridTiles} view */
  show(view) {
    const focused = this.host.contains(this.session.root.activeElement);
    this.#change(view);
    this.layout.arrange(this.#countRoom(view));
    this.prerender.show(view);
    // Where the page scrolls, "Save all" is pressed at the end of a grid; the next one starts at its top.
    if (this.layout.scrolls && this.host.getBoundingClientRect().top < 0) this.host.scrollIntoView();
    const drawn = () => {
      if (this.view !== view || this.seen) return;
      this.seen = true;
      this.unseenTiles.watch(this.layout.allFit ? [] : view.parts.map(({ box }) => box));
      if (focused) view.focus();
      this.peek.show();
    };
    onDraw(drawn);
  }

  /** Put something on screen that is no grid. @param {HTMLElement} element */
  fill(element) {
    this.#change(null);
    this.prerender.fillHost(element);
  }

  /** Put this on screen while a grid of so many tiles is on its way. @param {number} size */
  wait(size) {
    this.fill(buildSkeleton(size));
  }

  /** Tiles that a grid is laid out for: the last grids of a class keep the usual size. @param {GridTiles} view */
  #countRoom({ grid: { tiles } }) {
    return Math.max(this.usual ?? 0, Math.ceil(tiles.length / TILE_COUNT_MULTIPLE) * TILE_COUNT_MULTIPLE);
  }

  /** @param {GridTiles | null} view */
  #change(view) {
    this.view = view;
    this.seen = false;
    this.unseenTiles.watch([]);
    if (this.tileZoom.isOpen) this.tileZoom.dialog.close();
    if (this.eventImages.isOpen) this.eventImages.dialog.close();
  }

  /** @param {number} index */
  #onMark(index) {
    this.onMarks(this.view);
    this.session.hints.noteUse("mark");
    if (this.tileZoom.isOpen) this.tileZoom.showMark(this.view.grid.tiles[index].mark, this.view.isGuess(index));
  }
}
