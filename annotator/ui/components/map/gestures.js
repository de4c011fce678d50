// @ts-check
/**
 * What a pointer does on the map besides zooming and panning: it draws around images, points at one, clicks one. A finger
 * draws, two move and zoom; a mouse draws, and moves with Space held, with another button, or in "Move". Whatever needs a
 * drag has a button too.
 */

const CLICK = 5; // pixels a pointer may stray in a click
const STEP = 3; // pixels between two corners of what is drawn
const NEAR = 14; // pixels from a point within which it is meant

/** @typedef {{left: number, top: number}} Place pixels from the corner of the plane */

export class Gestures {
  /**
   * @param {HTMLElement} element that lies over the plane @param {import("./plane.js").Plane} plane
   * @param {{onDraw: (place: Place, first: boolean) => void, onDrawn: () => void, onCancel: () => void,
   *          onClick: (place: Place) => void, onHover: (index: number) => void}} on
   *   onDraw     a line is being drawn and has come here
   *   onDrawn    it is finished
   *   onCancel   it was not meant: a second finger came, or the browser took the pointer away
   *   onHover    the index of the point under the pointer, -1 for none; once a frame at most
   */
  constructor(element, plane, on) {
    this.element = element;
    this.plane = plane;
    this.on = on;
    /** Whether a plain drag moves the map. */
    this.moving = false;
    this.spaceHeld = false;
    this.spaceUsed = false;
    /** Where the pointer was last, until the next frame asks what is there. @type {Place | null} */
    this.hovered = null;
    plane.view.listen(element, (event) => this.#press(event));
    element.addEventListener("pointermove", (event) => event.pointerType === "mouse" && !event.buttons && this.#hover(this.#place(event)));
    element.addEventListener("pointerleave", () => this.#hover(null));
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

  /** What a pressed pointer does. @param {PointerEvent} event @returns {import("../shared/panzoom.js").Drag | null} */
  #press(event) {
    if (event.target !== this.element) return null;
    this.#hover(null);
    if (this.spaceHeld) this.spaceUsed = true;
    const start = this.#place(event);
    if (this.moving || this.spaceHeld || event.button > 0) return this.#pan(start, this.moving && event.button === 0);
    return this.#draw(start);
  }

  /** Move the map. @param {Place} start @param {boolean} centres whether a click brings its place to the middle */
  #pan(start, centres) {
    return {
      ...this.plane.view.panning,
      end: (/** @type {import("../shared/panzoom.js").Place} */ at) => {
        const place = this.#inPlane(at);
        if (centres && distance(start, place) <= CLICK) this.plane.centre(place.left, place.top);
      },
    };
  }

  /** Draw a line, or click where the pointer does not move. @param {Place} start */
  #draw(start) {
    let last = start;
    let drawing = false;
    return {
      move: (/** @type {import("../shared/panzoom.js").Place} */ at) => {
        const place = this.#inPlane(at);
        if (!drawing && distance(start, place) > CLICK) {
          drawing = true;
          this.on.onDraw(start, true);
        }
        if (!drawing || distance(last, place) < STEP) return;
        last = place;
        this.on.onDraw(place, false);
      },
      end: (/** @type {import("../shared/panzoom.js").Place} */ at) => (drawing ? this.on.onDrawn() : this.on.onClick(this.#inPlane(at))),
      cancel: () => drawing && this.on.onCancel(),
    };
  }

  /** @param {import("../shared/panzoom.js").Place} at from the middle @returns {Place} */
  #inPlane({ x, y }) {
    return { left: x + this.plane.width / 2, top: y + this.plane.height / 2 };
  }

  /** @param {Place | null} place */
  #hover(place) {
    const waiting = this.hovered !== null;
    this.hovered = place;
    if (!place) this.on.onHover(-1);
    else if (!waiting) {
      requestAnimationFrame(() => {
        const last = this.hovered;
        this.hovered = null;
        if (last) this.on.onHover(this.plane.nearest(last.left, last.top, NEAR));
      });
    }
  }
}

/** @param {Place} from @param {Place} to */
function distance(from, to) {
  return Math.hypot(from.left - to.left, from.top - to.top);
}
