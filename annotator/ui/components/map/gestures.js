// @ts-check
/**
 * What a pointer does on the plane: draws around images, moves the map, comes nearer. A finger draws, two move and zoom;
 * a mouse draws, and moves with Space held, with another button, or in "Move". Whatever needs a drag has a button too.
 */

const CLICK = 5; // pixels a pointer may stray in a click
const STEP = 3; // pixels between two corners of what is drawn
const NEAR = 14; // pixels from a point within which it is meant

/** @typedef {{left: number, top: number}} Place */

export class Gestures {
  /**
   * @param {HTMLElement} element that lies over the plane @param {import("./plane.js").Plane} plane
   * @param {{onDraw: (place: Place, first: boolean) => void, onDrawn: () => void, onCancel: () => void,
   *          onClick: (place: Place) => void, onHover: (index: number) => void}} told
   *   onDraw     a line is being drawn and has come here
   *   onDrawn    it is finished
   *   onCancel   it was not meant: a second finger came, or the browser took the pointer away
   *   onHover    the index of the point under the pointer, -1 for none; once a frame at most
   */
  constructor(element, plane, told) {
    this.element = element;
    this.plane = plane;
    this.told = told;
    /** Whether a plain drag moves the map. */
    this.moving = false;
    this.spaceHeld = false;
    this.spaceUsed = false;
    /** @type {Map<number, Place>} */
    this.down = new Map();
    /** @type {Place} */
    this.began = { left: 0, top: 0 };
    /** @type {"" | "click" | "draw" | "pan" | "pinch"} */
    this.doing = "";
    /** @type {Place | null} */
    this.hovered = null;
    element.addEventListener("pointerdown", (event) => this.#press(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerup", (event) => this.#release(event));
    element.addEventListener("pointercancel", (event) => this.#lost(event));
    element.addEventListener("pointerleave", () => this.#hover(null));
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    element.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  /** Space was pressed. */
  hold() {
    this.spaceHeld = true;
    this.spaceUsed = false;
    this.element.classList.add("moving");
  }

  /** Space was let go. @returns {boolean} whether it was held for nothing, that is, only pressed */
  letGo() {
    const only = this.spaceHeld && !this.spaceUsed;
    this.spaceHeld = false;
    this.element.classList.toggle("moving", this.moving);
    return only;
  }

  /** @param {boolean} moving */
  setMoving(moving) {
    this.moving = moving;
    this.element.classList.toggle("moving", moving);
  }

  /** @param {PointerEvent} event @returns {Place} */
  #place(event) {
    const box = this.element.getBoundingClientRect();
    return { left: event.clientX - box.left, top: event.clientY - box.top };
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.target !== this.element) return;
    this.element.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, this.#place(event));
    this.#hover(null);
    if (this.down.size === 2) {
      if (this.doing === "draw") this.told.onCancel();
      this.doing = "pinch";
      return;
    }
    this.began = this.#place(event);
    const pans = this.moving || this.spaceHeld || event.button > 0;
    if (this.spaceHeld) this.spaceUsed = true;
    this.doing = pans ? "pan" : "click";
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const place = this.#place(event);
    const before = this.down.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.#hover(place);
      return;
    }
    if (this.doing === "pinch") {
      this.#pinch(event.pointerId, before, place);
      return;
    }
    if (this.doing === "pan") {
      this.down.set(event.pointerId, place);
      this.plane.pan(place.left - before.left, place.top - before.top);
      return;
    }
    if (this.doing === "click" && distance(this.began, place) > CLICK) {
      this.doing = "draw";
      this.told.onDraw(this.began, true);
    }
    if (this.doing === "draw" && distance(before, place) >= STEP) {
      this.down.set(event.pointerId, place);
      this.told.onDraw(place, false);
    }
  }

  /** @param {number} pointer @param {Place} before @param {Place} place */
  #pinch(pointer, before, place) {
    const other = [...this.down].find(([id]) => id !== pointer)?.[1];
    this.down.set(pointer, place);
    if (!other || this.down.size !== 2) return;
    this.plane.pan((place.left - before.left) / 2, (place.top - before.top) / 2);
    const middle = { left: (place.left + other.left) / 2, top: (place.top + other.top) / 2 };
    this.plane.zoom(distance(place, other) / Math.max(distance(before, other), 1), middle.left, middle.top);
  }

  /** @param {PointerEvent} event */
  #release(event) {
    if (!this.down.delete(event.pointerId)) return;
    const place = this.#place(event);
    const still = distance(this.began, place) <= CLICK;
    if (this.doing === "draw") this.told.onDrawn();
    else if (this.doing === "pan" && still && this.moving && event.button === 0) {
      this.plane.centre(...this.plane.toMap(place.left, place.top));
    } else if (this.doing === "click") this.told.onClick(place);
    // The second finger of two is lifted later, and means nothing any more.
    this.doing = this.down.size ? "pinch" : "";
  }

  /** @param {PointerEvent} event */
  #lost(event) {
    this.down.delete(event.pointerId);
    if (this.doing === "draw") this.told.onCancel();
    this.doing = "";
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    const box = this.element.getBoundingClientRect();
    this.plane.zoom(Math.exp(-event.deltaY * lines * 0.002), event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {Place | null} place */
  #hover(place) {
    const waiting = this.hovered !== null;
    this.hovered = place;
    if (!place) this.told.onHover(-1);
    else if (!waiting) {
      requestAnimationFrame(() => {
        const last = this.hovered;
        this.hovered = null;
        if (last) this.told.onHover(this.plane.nearest(last.left, last.top, NEAR));
      });
    }
  }
}

/** @param {Place} one @param {Place} other */
function distance(one, other) {
  return Math.hypot(one.left - other.left, one.top - other.top);
}
