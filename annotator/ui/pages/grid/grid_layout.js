// @ts-check
/**
 * How many tiles stand side by side, and how many fit. With a size that the person has chosen, as many as are at least so
 * large; without one, the usual number fills the window. On small screens few stand side by side, and the page scrolls.
 */

import { MIN_TILE_PIXELS } from "./tile_size.js";

const PHONE_PIXELS = 700; // CSS pixels
const DESK_PIXELS = 1000;
const TILE_RATIO = 1.2; // width by height of what most pictures fit into
const TILE_GAP_PIXELS = 6; // between tiles, and HOST_MARGIN_PIXELS around all of them: tiles.css
const HOST_MARGIN_PIXELS = 4;
const MAX_TILES = 96; // tiles of a grid
const SLACK_PIXELS = 24; // pixels: a line more of words above Autopilot's tiles
const SCROLLED_TILES = 24; // tiles of a grid where the page scrolls

export class GridLayout {
  /**
   * @param {HTMLElement} host @param {import("./tile_size.js").TileSize} size
   * @param {number | null} usual tiles of a grid while no size is chosen; null: as many as fit at the smallest size
   * @param {() => void} onRoom another number of tiles may fit
   */
  constructor(host, size, usual, onRoom) {
    this.host = host;
    this.size = size;
    this.usual = usual;
    this.onRoom = onRoom;
    /** Tiles that it is laid out for. */
    this.count = usual ?? SCROLLED_TILES;
    this.columns = 1;
    this.rows = 1;
    this.width = this.height = 0;
    this.scrolls = this.phone = false;
    /** @type {{key: string, room: number} | null} */
    this.steady = null;
    this.observer = new ResizeObserver(() => {
      this.#measure();
      this.arrange(this.count);
      this.onRoom();
    });
    this.observer.observe(host);
  }

  close() {
    this.observer.disconnect();
  }

  /** Whether all tiles on screen are in sight, without scrolling. */
  get allFit() {
    return !this.scrolls && !this.host.classList.contains("over");
  }

  /** How many tiles the next grid has at most. */
  get room() {
    if (!this.width) this.#measure();
    if (!this.width) return this.usual ?? this.count;
    if (this.scrolls) return this.#countScrolledColumns() * Math.max(1, Math.round(SCROLLED_TILES / this.#countScrolledColumns()));
    const { columns, rows } = this.#countFitting(this.size.chosen ?? MIN_TILE_PIXELS, this.usual ? 0 : SLACK_PIXELS);
    const fitting = Math.min(columns * rows, MAX_TILES);
    return this.size.chosen || !this.usual ? fitting : Math.min(this.usual, fitting);
  }

  /** The same, as long as window and size stay: what is around the tiles changes from one task to the next. */
  get steadyRoom() {
    const key = `${window.innerWidth} ${window.innerHeight} ${this.size.chosen}`;
    if (!this.width || this.steady?.key !== key) this.steady = { key, room: this.room };
    return this.steady.room;
  }

  /** The next size, null where there is none. @param {1 | -1} way larger, smaller */
  next(way) {
    if (!this.width) return null;
    const { columns, rows } = this.scrolls || !this.size.chosen ? this.plan(this.count) : this.#countFitting(this.size.chosen);
    const wide = (this.width + TILE_GAP_PIXELS) / columns - TILE_GAP_PIXELS;
    const now = this.scrolls ? wide : Math.min(wide / TILE_RATIO, (this.height + TILE_GAP_PIXELS) / rows - TILE_GAP_PIXELS);
    const differs = (/** @type {number} */ size) =>
      this.scrolls ? this.#countScrolledColumns(size) !== columns : this.#countFitting(size).columns !== columns || this.#countFitting(size).rows !== rows;
    return this.size.listSizes(way, now).find(differs) ?? null;
  }

  /** Columns and rows for so many tiles. @param {number} count @returns {{columns: number, rows: number, over: boolean}} */
  plan(count) {
    if (this.scrolls) return { columns: this.#countScrolledColumns(), rows: Math.ceil(count / this.#countScrolledColumns()), over: false };
    if (!this.size.chosen) {
      const columns = countColumns(count, this.width, this.height);
      return { columns, rows: Math.ceil(count / columns), over: false };
    }
    const { columns, rows } = this.#countFitting(this.size.chosen);
    const needed = Math.ceil(count / columns);
    return { columns, rows: Math.max(rows, needed), over: needed > rows };
  }

  /** Whether so many tiles are laid out as what is on screen. @param {number} count */
  fitsAlike(count) {
    const { columns, rows } = this.plan(count);
    return columns === this.columns && rows === this.rows;
  }

  /** Lay out so many tiles; nothing is measured, which would delay the next frame. @param {number} count */
  arrange(count) {
    this.count = count;
    if (!this.width) return;
    const { columns, rows, over } = this.plan(count);
    Object.assign(this, { columns, rows });
    this.host.style.setProperty("--columns", String(columns));
    this.host.style.setProperty("--rows", String(rows));
    this.host.style.setProperty("--tile", `${this.size.chosen ?? MIN_TILE_PIXELS}px`);
    this.host.classList.toggle("over", over);
  }

  /** Columns where the page scrolls. @param {number | null} size */
  #countScrolledColumns(size = this.size.chosen) {
    return size ? Math.max(1, Math.round((this.width + TILE_GAP_PIXELS) / (size + TILE_GAP_PIXELS))) : this.phone ? 3 : 4;
  }

  /** @param {number} size @param {number} [slack] pixels of height that may be lacking later */
  #countFitting(size, slack = 0) {
    return {
      columns: Math.max(1, Math.floor((this.width + TILE_GAP_PIXELS) / (TILE_RATIO * size + TILE_GAP_PIXELS))),
      rows: Math.max(1, Math.floor((this.height - slack + TILE_GAP_PIXELS) / (size + TILE_GAP_PIXELS))),
    };
  }

  /** A host that is hidden keeps the size it had. */
  #measure() {
    const { clientWidth, clientHeight } = this.host;
    if (!clientWidth) return;
    this.scrolls = window.innerWidth < DESK_PIXELS;
    this.phone = window.innerWidth < PHONE_PIXELS;
    this.width = clientWidth - 2 * HOST_MARGIN_PIXELS;
    this.height = clientHeight - 2 * HOST_MARGIN_PIXELS;
  }
}

/** @param {number} count @param {number} width @param {number} height CSS pixels */
function countColumns(count, width, height) {
  const side = (/** @type {number} */ columns) => Math.min(width / columns / TILE_RATIO, height / Math.ceil(count / columns));
  let best = 1;
  for (let columns = 2; columns <= count; columns += 1) {
    if (count % columns === 0 && side(columns) > side(best)) best = columns;
  }
  return best;
}
