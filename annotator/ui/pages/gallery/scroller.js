// @ts-check
/**
 * A long list of rows of one height, scrolled by the browser itself, of which only the rows near the viewport exist.
 *
 * Browsers draw no element taller than some ten million pixels. A longer list gets a scroll bar of MAX_HEIGHT_PIXELS: near
 * both ends a pixel of the bar is a pixel of the list, in between it is several. A wheel, a finger or a key still moves
 * the rows pixel by pixel; only a drag of the bar jumps. What the bar has then drifted from its place is put right once
 * the list stands still, which moves no row on screen.
 */

import { el } from "../shared/dom.js";

const MAX_HEIGHT_PIXELS = 8e6; // CSS pixels
const EXACT_END_PIXELS = 2e5; // pixels at both ends where the bar is exact
const JUMP_VIEWPORTS = 3; // viewports; what moves further at once was a drag of the bar
const REST_MILLISECONDS = 140; // milliseconds without a scroll event

/** Where the scroll bar stands for each position in the list, and the other way round. All in CSS pixels. */
export class ScrollScale {
  /** @param {number} length of the list @param {number} view height of the viewport */
  constructor(length, view) {
    this.height = Math.min(length, MAX_HEIGHT_PIXELS);
    this.most = Math.max(0, length - view);
    this.bar = Math.max(0, this.height - view);
  }

  /** @param {number} position @returns {number} scrollTop */
  toBar(position) {
    const { most, bar } = this;
    if (most === bar || position <= EXACT_END_PIXELS) return position;
    if (position >= most - EXACT_END_PIXELS) return bar - (most - position);
    return EXACT_END_PIXELS + ((position - EXACT_END_PIXELS) * (bar - 2 * EXACT_END_PIXELS)) / (most - 2 * EXACT_END_PIXELS);
  }

  /** @param {number} bar scrollTop @returns {number} position */
  toPosition(bar) {
    const { most } = this;
    if (most === this.bar || bar <= EXACT_END_PIXELS) return bar;
    if (bar >= this.bar - EXACT_END_PIXELS) return most - (this.bar - bar);
    return EXACT_END_PIXELS + ((bar - EXACT_END_PIXELS) * (most - 2 * EXACT_END_PIXELS)) / (this.bar - 2 * EXACT_END_PIXELS);
  }
}

export class Scroller {
  /**
   * @param {{onMove: (fast: boolean) => void, onStill: () => void, onResize: () => void}} on
   *   onMove    other rows may be in sight; fast: they pass too quickly to be looked at
   *   onStill   the list has come to rest
   *   onResize  the viewport has another size
   */
  constructor(on) {
    this.on = on;
    this.content = el("div", { class: "rows", role: "presentation" });
    this.element = el("div", { class: "scroller" }, this.content);
    this.rows = 0;
    this.rowHeight = 1;
    this.view = 0;
    this.width = 0;
    this.scale = new ScrollScale(0, 0);
    /** Pixels of the list above the viewport. */
    this.position = 0;
    /** scrollTop as it was last seen or set. */
    this.bar = 0;
    this.timer = 0;
    this.element.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    this.observer = new ResizeObserver(() => this.#measure());
    this.observer.observe(this.element);
  }

  close() {
    clearTimeout(this.timer);
    this.observer.disconnect();
  }

  /** So many rows of such a height; the position stays, as far as there is so much. @param {number} rows @param {number} rowHeight */
  lay(rows, rowHeight) {
    this.rows = rows;
    this.rowHeight = rowHeight;
    this.#rescale();
  }

  /** The rows in sight, the last one included. */
  get inSight() {
    const last = Math.floor((this.position + this.view - 1) / this.rowHeight);
    return { first: Math.max(0, Math.floor(this.position / this.rowHeight)), last: Math.min(this.rows - 1, last) };
  }

  /** Where a row lies in the content. @param {number} row */
  topOf(row) {
    return row * this.rowHeight - this.position + this.bar;
  }

  /** Have a row in sight, with as little movement as possible. @param {number} row */
  reveal(row) {
    const top = row * this.rowHeight;
    if (top < this.position) this.moveTo(top);
    else if (top + this.rowHeight > this.position + this.view) this.moveTo(top + this.rowHeight - this.view);
  }

  /** @param {number} position in pixels of the list */
  moveTo(position) {
    this.position = Math.min(Math.max(0, position), this.scale.most);
    this.#setBar();
    this.on.onMove(false);
  }

  #measure() {
    const { clientHeight, clientWidth } = this.element;
    if (!clientHeight || (clientHeight === this.view && clientWidth === this.width)) return;
    this.view = clientHeight;
    this.width = clientWidth;
    this.#rescale();
    this.on.onResize();
  }

  #rescale() {
    this.scale = new ScrollScale(this.rows * this.rowHeight, this.view);
    this.content.style.height = `${this.scale.height}px`;
    this.position = Math.min(this.position, this.scale.most);
    this.#setBar();
  }

  #setBar() {
    this.element.scrollTop = this.scale.toBar(this.position);
    this.bar = this.element.scrollTop; // the browser may round it
  }

  #onScroll() {
    const by = this.element.scrollTop - this.bar;
    if (by) {
      this.bar += by;
      const jumped = Math.abs(by) > JUMP_VIEWPORTS * this.view;
      const to = jumped ? this.scale.toPosition(this.bar) : this.position + by;
      this.position = Math.min(Math.max(0, to), this.scale.most);
      if (Math.abs(this.scale.toBar(this.position) - this.bar) > EXACT_END_PIXELS / 2) this.#setBar();
      this.on.onMove(Math.abs(by) > this.view);
    }
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.#rest(), REST_MILLISECONDS);
  }

  #rest() {
    if (Math.abs(this.scale.toBar(this.position) - this.bar) > 1) this.#setBar();
    this.on.onStill();
  }
}
