// @ts-check
/** The map without a pointer: a crosshair that goes from point to point, and rectangles between two of its places. */

import { FIND_ROW, FIX_ROW } from "../shared/fix_link.js";

const MIN_STEP_PIXELS = 8; // pixels: a step is always seen
const SHIFT_STEP_PIXELS = 28; // pixels, with Shift
const PAN_EDGE_PIXELS = 40; // pixels from the rim from which on the map comes along

const ARROW_DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export const KEY_HELP = [
  {
    title: "Select",
    rows: /** @type {[string | string[], string][]} */ ([
      [["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"], "go to the next image in that direction"],
      ["Enter", "start a rectangle here, then finish it"],
      ["Shift + arrows", "resize the rectangle"],
      ["A", "select everything in view"],
      ["G", "send the selection to the grid"],
      ["Esc", "clear the selection"],
    ]),
  },
  {
    title: "Look",
    rows: /** @type {[string | string[], string][]} */ ([
      [" ", "enlarge the image at the crosshair"],
      [["PageUp", "PageDown"], "zoom in, zoom out (or scroll)"],
      ["Home", "the whole map"],
      ["Space + drag", "move the map (or two fingers, or Move)"],
      FIX_ROW,
      FIND_ROW,
      ["?", "this list (also F1)"],
    ]),
  },
];

export class Crosshair {
  /**
   * @param {import("./map_canvas.js").MapCanvas} canvas
   * @param {{onPoint: (index: number) => void, onRectangle: (closed: boolean) => void}} on
   *   onPoint        the crosshair has come to a point, -1: to a place between points
   *   onRectangle    the canvas's polygon is another rectangle
   */
  constructor(canvas, on) {
    this.canvas = canvas;
    this.on = on;
    /** Where a rectangle was begun. @type {[number, number] | null} */
    this.anchor = null;
    this.index = -1;
  }

  /** @param {string} key @param {boolean} shift @returns {boolean} whether it was an arrow */
  arrow(key, shift) {
    const direction = ARROW_DIRECTIONS[key];
    if (!direction) return false;
    if (!this.canvas.crosshair) this.#start();
    else if (shift) this.#glide(direction[0], direction[1]);
    else this.#jump(direction[0], direction[1]);
    return true;
  }

  /** Begin a rectangle, or end the one that was begun. */
  enter() {
    if (!this.canvas.crosshair) this.#start();
    if (!this.canvas.crosshair) return;
    if (this.anchor) {
      this.anchor = null;
      this.on.onRectangle(true);
    } else {
      this.anchor = this.canvas.crosshair;
      this.#stretch();
    }
  }

  /** Forget a rectangle that was begun. */
  drop() {
    this.anchor = null;
  }

  /** Put it away: the pointer is at work again. */
  hide() {
    this.drop();
    this.index = -1;
    this.canvas.crosshair = null;
  }

  #start() {
    this.#to(this.canvas.nearest(this.canvas.width / 2, this.canvas.height / 2));
  }

  /** @param {number} right @param {number} down */
  #jump(right, down) {
    const from = this.canvas.toScreen(...this.canvas.crosshair);
    this.#to(this.canvas.next(from, right, down, MIN_STEP_PIXELS));
  }

  /** @param {number} index */
  #to(index) {
    if (index < 0) return;
    this.index = index;
    this.#move([this.canvas.points.x[index], this.canvas.points.y[index]]);
  }

  /** @param {number} right @param {number} down */
  #glide(right, down) {
    this.anchor ??= this.canvas.crosshair;
    const [left, top] = this.canvas.toScreen(...this.canvas.crosshair);
    const [x, y] = this.canvas.toMap(left + SHIFT_STEP_PIXELS * right, top + SHIFT_STEP_PIXELS * down);
    this.index = -1;
    this.#move([Math.min(Math.max(x, -0.02), 1.02), Math.min(Math.max(y, -0.02), 1.02)]);
  }

  /** @param {[number, number]} place in the map */
  #move(place) {
    this.canvas.crosshair = place;
    const [left, top] = this.canvas.toScreen(...place);
    const { width, height } = this.canvas;
    const aside = Math.min(left - PAN_EDGE_PIXELS, 0) || Math.max(left - width + PAN_EDGE_PIXELS, 0);
    const above = Math.min(top - PAN_EDGE_PIXELS, 0) || Math.max(top - height + PAN_EDGE_PIXELS, 0);
    if (aside || above) this.canvas.view.panBy(-aside, -above);
    else this.canvas.redrawOver();
    if (this.anchor) this.#stretch();
    this.on.onPoint(this.index);
  }

  #stretch() {
    const [[x, y], [toX, toY]] = [this.anchor, this.canvas.crosshair];
    this.canvas.polygon = [[x, y], [toX, y], [toX, toY], [x, toY]];
    this.on.onRectangle(false);
  }
}
