// @ts-check
/** The map without a pointer: a crosshair that goes from point to point, and rectangles between two of its places. */

import { FIND_ROW, FIX_ROW } from "../shared/fix.js";

const LEAST = 8; // pixels: a step is always seen
const STEP = 28; // pixels, with Shift
const EDGE = 40; // pixels from the rim from which on the map comes along

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export const HELP = [
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
   * @param {import("./plane.js").Plane} plane
   * @param {{onPoint: (index: number) => void, onRectangle: (closed: boolean) => void}} on
   *   onPoint        the crosshair has come to a point, -1: to a place between points
   *   onRectangle    the plane's polygon is another rectangle
   */
  constructor(plane, on) {
    this.plane = plane;
    this.on = on;
    /** Where a rectangle was begun. @type {[number, number] | null} */
    this.anchor = null;
    this.index = -1;
  }

  /** @param {string} key @param {boolean} shift @returns {boolean} whether it was an arrow */
  arrow(key, shift) {
    const direction = ARROWS[key];
    if (!direction) return false;
    if (!this.plane.crosshair) this.#start();
    else if (shift) this.#glide(direction[0], direction[1]);
    else this.#jump(direction[0], direction[1]);
    return true;
  }

  /** Begin a rectangle, or end the one that was begun. */
  enter() {
    if (!this.plane.crosshair) this.#start();
    if (!this.plane.crosshair) return;
    if (this.anchor) {
      this.anchor = null;
      this.on.onRectangle(true);
    } else {
      this.anchor = this.plane.crosshair;
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
    this.plane.crosshair = null;
  }

  #start() {
    this.#to(this.plane.nearest(this.plane.width / 2, this.plane.height / 2));
  }

  /** @param {number} right @param {number} down */
  #jump(right, down) {
    const from = this.plane.toScreen(...this.plane.crosshair);
    this.#to(this.plane.next(from, right, down, LEAST));
  }

  /** @param {number} index */
  #to(index) {
    if (index < 0) return;
    this.index = index;
    this.#move([this.plane.points.x[index], this.plane.points.y[index]]);
  }

  /** @param {number} right @param {number} down */
  #glide(right, down) {
    this.anchor ??= this.plane.crosshair;
    const [left, top] = this.plane.toScreen(...this.plane.crosshair);
    const [x, y] = this.plane.toMap(left + STEP * right, top + STEP * down);
    this.index = -1;
    this.#move([Math.min(Math.max(x, -0.02), 1.02), Math.min(Math.max(y, -0.02), 1.02)]);
  }

  /** @param {[number, number]} place in the map */
  #move(place) {
    this.plane.crosshair = place;
    const [left, top] = this.plane.toScreen(...place);
    const { width, height } = this.plane;
    const aside = Math.min(left - EDGE, 0) || Math.max(left - width + EDGE, 0);
    const above = Math.min(top - EDGE, 0) || Math.max(top - height + EDGE, 0);
    if (aside || above) this.plane.view.panBy(-aside, -above);
    else this.plane.moved();
    if (this.anchor) this.#stretch();
    this.on.onPoint(this.index);
  }

  #stretch() {
    const [[x, y], [toX, toY]] = [this.anchor, this.plane.crosshair];
    this.plane.polygon = [[x, y], [toX, y], [toX, toY], [x, toY]];
    this.on.onRectangle(false);
  }
}
