// @ts-check
/**
 * A pointer that rests where the last image was answered points at nothing on the next one: until it moves, no button
 * below it looks as if it were chosen. The style sheets ask for the class `still` of the page's root.
 */

import { afterPaint } from "./dom.js";

const STILL_CLASS = "still";
const POINTER_EVENTS = /** @type {const} */ (["pointerover", "pointermove"]); // a browser sends the first also where only the page moved

export class RestingPointer {
  /** @param {HTMLElement} element root of the page */
  constructor(element) {
    this.element = element;
    this.place = "";
    /** After the frame of the next picture, which must not wait for styles. */
    this.rest = afterPaint(() => this.element.classList.add(STILL_CLASS));
    this.move = (/** @type {PointerEvent} */ event) => this.#onMove(event);
    for (const name of POINTER_EVENTS) window.addEventListener(name, this.move, { capture: true, passive: true });
  }

  close() {
    for (const name of POINTER_EVENTS) window.removeEventListener(name, this.move, { capture: true });
  }

  /** @param {PointerEvent} event */
  #onMove({ screenX, screenY }) {
    const place = `${screenX},${screenY}`;
    if (place !== this.place) this.element.classList.remove(STILL_CLASS);
    this.place = place;
  }
}
