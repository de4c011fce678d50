// @ts-check
/**
 * How many tiles stand side by side, and how many fit. With a size that the person has chosen, as many as are at least so
 * large; without one, the usual number fills the window. On small screens few stand side by side, and the page scrolls.
 */

import { SMALLEST } from "./size.js";

const PHONE = 700; // CSS pixels
const DESK = 1000;
const SHAPE = 1.2; // width by height of what most pictures fit into
const GAP = 6; // between tiles, and MARGIN around all of them: tiles.css
const MARGIN = 4;
const MOST = 96; // tiles of a grid
const SLACK = 24; // pixels: a line more of words above Autopilot's tiles
const LONG = 24; // tiles of a grid where the page scrolls

export class Layout {
  /**
   * @param {HTMLElement} host @param {import("./size.js").TileSize} size
   * @param {number | null} usual tiles of a grid while no size is chosen; null: as many as fit at the smallest size
   * @param {() => void} onRoom another number of tiles may fit
   */
  constructor(host, size, usual, onRoom) {
    this.host = host;
    this.size = size;
    this.usual = usual;
    this.onRoom = onRoom;
    /** Tiles that it is laid out for. */
    this.count = usual ?? LONG;
    this.columns = 1;
    this.rows = 1;
    this.width = this.height = 0;
    this.scrolls = this.phone = false;
    /** @type {{key: string, room: number} | null} */
    this.steady = null;
    this.observer = new ResizeObserver(() => {
      this.#measure();
      this.hold(this.count);
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
    if (this.scrolls) return this.#few() * Math.max(1, Math.round(LONG / this.#few()));
    const { columns, rows } = this.#fitting(this.size.chosen ?? SMALLEST, this.usual ? 0 : SLACK);
    const fitting = Math.min(columns * rows, MOST);
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
    const { columns, rows } = this.scrolls || !this.size.chosen ? this.plan(this.count) : this.#fitting(this.size.chosen);
    const wide = (this.width + GAP) / columns - GAP;
    const now = this.scrolls ? wide : Math.min(wide / SHAPE, (this.height + GAP) / rows - GAP);
    const differs = (/** @type {number} */ size) =>
      this.scrolls ? this.#few(size) !== columns : this.#fitting(size).columns !== columns || this.#fitting(size).rows !== rows;
    return this.size.steps(way, now).find(differs) ?? null;
  }

  /** Columns and rows for so many tiles. @param {number} count @returns {{columns: number, rows: number, over: boolean}} */
  plan(count) {
    if (this.scrolls) return { columns: this.#few(), rows: Math.ceil(count / this.#few()), over: false };
    if (!this.size.chosen) {
      const columns = columnsFor(count, this.width, this.height);
      return { columns, rows: Math.ceil(count / columns), over: false };
    }
    const { columns, rows } = this.#fitting(this.size.chosen);
    const needed = Math.ceil(count / columns);
    return { columns, rows: Math.max(rows, needed), over: needed > rows };
  }

  /** Whether so many tiles are laid out as what is on screen. @param {number} count */
  same(count) {
    const { columns, rows } = this.plan(count);
    return columns === this.columns && rows === this.rows;
  }

  /** Lay out so many tiles; nothing is measured, which would delay the next frame. @param {number} count */
  hold(count) {
    this.count = count;
    if (!this.width) return;
    const { columns, rows, over } = this.plan(count);
    Object.assign(this, { columns, rows });
    this.host.style.setProperty("--columns", String(columns));
    this.host.style.setProperty("--rows", String(rows));
    this.host.style.setProperty("--tile", `${this.size.chosen ?? SMALLEST}px`);
    this.host.classList.toggle("over", over);
  }

  /** Columns where the page scrolls. @param {number | null} size */
  #few(size = this.size.chosen) {
    return size ? Math.max(1, Math.round((this.width + GAP) / (size + GAP))) : this.phone ? 3 : 4;
  }

  /** @param {number} size @param {number} [slack] pixels of height that may be lacking later */
  #fitting(size, slack = 0) {
    return {
      columns: Math.max(1, Math.floor((this.width + GAP) / (SHAPE * size + GAP))),
      rows: Math.max(1, Math.floor((this.height - slack + GAP) / (size + GAP))),
    };
  }

  /** A host that is hidden keeps the size it had. */
  #measure() {
    const { clientWidth, clientHeight } = this.host;
    if (!clientWidth) return;
    this.scrolls = window.innerWidth < DESK;
    this.phone = window.innerWidth < PHONE;
    this.width = clientWidth - 2 * MARGIN;
    this.height = clientHeight - 2 * MARGIN;
  }
}

/** @param {number} count @param {number} width @param {number} height CSS pixels */
function columnsFor(count, width, height) {
  const side = (/** @type {number} */ columns) => Math.min(width / columns / SHAPE, height / Math.ceil(count / columns));
  let best = 1;
  for (let columns = 2; columns <= count; columns += 1) {
    if (count % columns === 0 && side(columns) > side(best)) best = columns;
  }
  return best;
}
