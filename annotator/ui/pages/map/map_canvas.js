// @ts-check
/**
 * The map the points lie in, and everything drawn on it. Two canvases: the points, redrawn only when they or the view
 * change, and above them the selection, the crosshair and the ring, which move.
 */

import { PanZoom } from "../shared/panzoom.js";
import { buildSprites } from "./point_sprites.js";

const MAX_ZOOM = 60; // times the whole map
const ZOOM_STEP = 1.5; // one press of a zoom key or button
const MIN_POINT_PIXELS = 1.7; // pixels, half a point's width
const MAX_POINT_PIXELS = 6.5;
const RIM_PIXELS = 26; // pixels around the whole map

/**
 * @typedef {{ids: Uint32Array, x: Float32Array, y: Float32Array}} Points places in 0..1, y downwards
 * @typedef {import("./point_sprites.js").Kind} Kind
 */

export class MapCanvas {
  constructor() {
    this.base = document.createElement("canvas");
    this.over = document.createElement("canvas");
    /** @type {Points} */
    this.points = { ids: new Uint32Array(0), x: new Float32Array(0), y: new Float32Array(0) };
    /** Which kind each point is of. */
    this.kindOf = new Uint8Array(0);
    /** @type {Kind[]} */
    this.kinds = [];
    /** Corners of the selection in the map's square. @type {[number, number][]} */
    this.polygon = [];
    /** Whether the polygon is finished. */
    this.closed = false;
    /** @type {[number, number] | null} */
    this.crosshair = null;
    /** Index of the point with a ring around it. */
    this.ringed = -1;
    this.width = this.height = 0;
    // The whole map never leaves the canvas: there is nothing beyond it.
    this.view = new PanZoom({
      sizes: () => ({ content: this.extent, window: this.extent }),
      scales: () => [1, MAX_ZOOM],
      onView: () => this.redraw(),
      step: ZOOM_STEP,
    });
    this.due = { base: false, over: false };
  }

  /** @param {number} width @param {number} height CSS pixels */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    const [across, down] = this.extent;
    this.width = width;
    this.height = height;
    // The same place of the map stays in the middle.
    this.view.x *= this.extent[0] / across;
    this.view.y *= this.extent[1] / down;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
    }
    this.redraw();
  }

  /** CSS pixels [width, height] that the whole map takes at scale 1. */
  get extent() {
    return [Math.max(this.width - 2 * RIM_PIXELS, 1), Math.max(this.height - 2 * RIM_PIXELS, 1)];
  }

  /** Half the width of a point: fewer ones are larger, and so are those one has come nearer to. */
  get radius() {
    const room = Math.sqrt((this.width * this.height) / Math.max(this.points.ids.length, 1));
    const alone = Math.min(Math.max(0.17 * room, MIN_POINT_PIXELS), MAX_POINT_PIXELS);
    return Math.min(alone * this.view.scale ** 0.3, MAX_POINT_PIXELS + 1.5);
  }

  /** @param {number} x @param {number} y in the map @returns {[number, number]} pixels */
  toScreen(x, y) {
    const { scale, x: right, y: down } = this.view;
    const [width, height] = this.extent;
    return [(x - 0.5) * width * scale + right + this.width / 2, (y - 0.5) * height * scale + down + this.height / 2];
  }

  /** @param {number} left @param {number} top pixels @returns {[number, number]} in the map */
  toMap(left, top) {
    const { scale, x: right, y: down } = this.view;
    const [width, height] = this.extent;
    return [(left - this.width / 2 - right) / (width * scale) + 0.5, (top - this.height / 2 - down) / (height * scale) + 0.5];
  }

  /** @param {number} left @param {number} top pixels of the place that comes to the middle */
  center(left, top) {
    this.view.panBy(this.width / 2 - left, this.height / 2 - top);
  }

  /** What is seen, as corners in the map. @returns {[number, number][]} */
  get corners() {
    const [left, top] = this.toMap(0, 0);
    const [right, bottom] = this.toMap(this.width, this.height);
    return [[left, top], [right, top], [right, bottom], [left, bottom]];
  }

  /** @param {number} left @param {number} top @param {number} within pixels @returns {number} index, or -1 */
  nearest(left, top, within = Infinity) {
    return this.#best((across, down) => {
      const distance = Math.hypot(across - left, down - top);
      return distance <= within ? distance : Infinity;
    });
  }

  /**
   * The nearest point in a direction, looked for in a cone that is wider than it is deep.
   * @param {[number, number]} from pixels @param {number} right @param {number} down one of them 0, the other 1 or -1
   * @param {number} least pixels away at least @returns {number} index, or -1
   */
  next(from, right, down, least) {
    return this.#best((across, below) => {
      const ahead = (across - from[0]) * right + (below - from[1]) * down;
      const aside = Math.abs((across - from[0]) * down) + Math.abs((below - from[1]) * right);
      return ahead >= least && aside <= ahead ? ahead + 2 * aside : Infinity;
    });
  }

  /** @param {(left: number, top: number) => number} cost of a point, in pixels */
  #best(cost) {
    let best = -1;
    let lowest = Infinity;
    for (let index = 0; index < this.points.ids.length; index += 1) {
      const price = cost(...this.toScreen(this.points.x[index], this.points.y[index]));
      if (price < lowest) [best, lowest] = [index, price];
    }
    return best;
  }

  /** The points or the view have changed. */
  redraw() {
    this.due.base = true;
    this.redrawOver();
  }

  /** Something above the points has changed. */
  redrawOver() {
    if (!this.due.over) requestAnimationFrame(() => this.#draw());
    this.due.over = true;
  }

  #draw() {
    if (this.due.base) this.#drawPoints();
    this.#drawOver();
    this.due = { base: false, over: false };
  }

  #drawPoints() {
    const context = this.base.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.base.width, this.base.height);
    const ratio = devicePixelRatio;
    const drawn = buildSprites(this.kinds, this.radius * ratio);
    const [left, top] = this.toScreen(0, 0).map((value) => value * ratio);
    const [right, bottom] = this.toScreen(1, 1).map((value) => value * ratio);
    const { x, y } = this.points;
    // Those that say most come last, on top of the others.
    for (const kind of this.kinds.keys()) {
      const sprite = drawn[kind];
      const half = sprite.width / 2;
      for (let index = 0; index < x.length; index += 1) {
        if (this.kindOf[index] !== kind) continue;
        const across = left + x[index] * (right - left) - half;
        const down = top + y[index] * (bottom - top) - half;
        if (across < -2 * half || down < -2 * half || across > this.base.width || down > this.base.height) continue;
        context.drawImage(sprite, Math.round(across), Math.round(down));
      }
    }
  }

  #drawOver() {
    const context = this.over.getContext("2d");
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const style = getComputedStyle(this.over);
    context.strokeStyle = style.color;
    context.fillStyle = style.color;
    this.#drawPolygon(context);
    if (this.ringed >= 0) {
      const [left, top] = this.toScreen(this.points.x[this.ringed], this.points.y[this.ringed]);
      context.lineWidth = 2;
      context.beginPath();
      context.arc(left, top, this.radius + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    if (this.crosshair) this.#drawCrosshair(context, ...this.toScreen(...this.crosshair));
  }

  /** @param {CanvasRenderingContext2D} context */
  #drawPolygon(context) {
    if (this.polygon.length < 2) return;
    context.beginPath();
    for (const [x, y] of this.polygon) context.lineTo(...this.toScreen(x, y));
    if (this.closed) context.closePath();
    context.globalAlpha = 0.12;
    context.fill("evenodd");
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.setLineDash(this.closed ? [] : [5, 4]);
    context.stroke();
    context.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} top */
  #drawCrosshair(context, left, top) {
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [right, down] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(left + 7 * right, top + 7 * down);
      context.lineTo(left + 18 * right, top + 18 * down);
    }
    context.stroke();
  }
}

