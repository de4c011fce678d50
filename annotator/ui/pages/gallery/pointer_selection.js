// @ts-check
/**
 * What a pointer does in the gallery. A click selects one image, with Ctrl one more or one fewer, with Shift a range; a
 * drag selects what its rectangle meets, and scrolls at the edges; two clicks open. A finger scrolls, and its tap selects
 * one more or one fewer.
 */

import { el } from "../shared/dom.js";

const CLICK_DRIFT_PIXELS = 6; // CSS pixels that a click may stray
const SCROLL_EDGE_PIXELS = 36; // pixels from the edge of the list where a drag scrolls
const SCROLL_SPEED_SHARE = 0.6; // of the distance beyond that, a frame

/** @typedef {{left: number, top: number}} Place in the list, as long as it is */

export class PointerSelection {
  /**
   * @param {import("./scroller.js").Scroller} scroller
   * @param {{indexOf: (box: Element) => number, meets: (from: Place, to: Place) => number[],
   *          onClick: (index: number, how: "one" | "toggle" | "range") => void, onOpen: (index: number) => void,
   *          onBegin: (index: number, keep: boolean) => void, onRectangle: (indexes: number[]) => void}} on
   *   meets   indexes of the tiles that a rectangle meets
   */
  constructor(scroller, on) {
    this.scroller = scroller;
    this.on = on;
    this.rectangle = el("div", { class: "rectangle", hidden: true });
    scroller.content.append(this.rectangle);
    /** @type {{pointer: number, from: Place, keep: boolean, index: number, drawn: boolean} | null} */
    this.drag = null;
    /** Where the pointer is in the window. */
    this.last = { clientX: 0, clientY: 0 };
    this.frame = 0;
    this.dragged = false;
    const { element } = scroller;
    element.addEventListener("pointerdown", (event) => this.#press(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerup", (event) => this.#end(event));
    element.addEventListener("pointercancel", (event) => this.#end(event));
    element.addEventListener("click", (event) => this.#click(event));
    element.addEventListener("dblclick", (event) => {
      const index = this.#findTile(event);
      if (index >= 0) on.onOpen(index);
    });
    element.addEventListener("dragstart", (event) => event.preventDefault());
  }

  close() {
    cancelAnimationFrame(this.frame);
  }

  /** The list has moved under a drag. */
  onScroll() {
    if (this.drag?.drawn) this.#draw();
  }

  /** @param {Event} event */
  #findTile(event) {
    const box = /** @type {Element} */ (event.target).closest(".thumb");
    return box ? this.on.indexOf(box) : -1;
  }

  /** @param {{clientX: number, clientY: number}} at @returns {Place} */
  #locate({ clientX, clientY }) {
    const { element, position } = this.scroller;
    const box = element.getBoundingClientRect();
    return { left: clientX - box.left, top: clientY - box.top + position };
  }

  /** @param {PointerEvent} event */
  #press(event) {
    this.dragged = false;
    const { element } = this.scroller;
    const onBar = event.clientX - element.getBoundingClientRect().left > element.clientWidth;
    if (event.button !== 0 || !event.isPrimary || event.pointerType === "touch" || onBar) return;
    const keep = event.ctrlKey || event.metaKey || event.shiftKey;
    this.drag = { pointer: event.pointerId, from: this.#locate(event), keep, index: this.#findTile(event), drawn: false };
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const { drag } = this;
    if (drag?.pointer !== event.pointerId) return;
    this.last = { clientX: event.clientX, clientY: event.clientY };
    if (!drag.drawn) {
      const { left, top } = this.#locate(event);
      if (Math.hypot(left - drag.from.left, top - drag.from.top) <= CLICK_DRIFT_PIXELS) return;
      drag.drawn = this.dragged = true;
      this.scroller.element.setPointerCapture(event.pointerId);
      const [first = 0] = drag.index >= 0 ? [drag.index] : this.on.meets(drag.from, drag.from);
      this.on.onBegin(first, drag.keep);
      this.rectangle.hidden = false;
      this.#roll();
    }
    this.#draw();
  }

  /** @param {PointerEvent} event */
  #end(event) {
    if (this.drag?.pointer !== event.pointerId) return;
    this.drag = null;
    this.rectangle.hidden = true;
    cancelAnimationFrame(this.frame);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const index = this.#findTile(event);
    if (index < 0 || this.dragged) return;
    const finger = /** @type {PointerEvent} */ (event).pointerType === "touch";
    const tick = Boolean(/** @type {Element} */ (event.target).closest(".tick"));
    const toggles = finger || tick || event.ctrlKey || event.metaKey;
    if (event.detail > 1 && !toggles) return; // the second click of two opens
    this.on.onClick(index, event.shiftKey ? "range" : toggles ? "toggle" : "one");
  }

  #draw() {
    const { drag, scroller } = this;
    if (!drag) return;
    const to = this.#locate(this.last);
    const left = Math.max(0, Math.min(drag.from.left, to.left));
    const top = Math.min(drag.from.top, to.top);
    const { style } = this.rectangle;
    style.left = `${left}px`;
    style.width = `${Math.min(Math.max(drag.from.left, to.left), scroller.width) - left}px`;
    style.top = `${top - scroller.position + scroller.bar}px`;
    style.height = `${Math.abs(to.top - drag.from.top)}px`;
    this.on.onRectangle(this.on.meets(drag.from, to));
  }

  /** Scroll while the pointer is at an edge. */
  #roll() {
    this.frame = requestAnimationFrame(() => {
      if (!this.drag) return;
      const box = this.scroller.element.getBoundingClientRect();
      const above = Math.min(0, this.last.clientY - box.top - SCROLL_EDGE_PIXELS);
      const below = Math.max(0, this.last.clientY - box.bottom + SCROLL_EDGE_PIXELS);
      const by = (above + below) * SCROLL_SPEED_SHARE;
      if (by) this.scroller.moveTo(this.scroller.position + by);
      this.#roll();
    });
  }
}
