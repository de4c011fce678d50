// @ts-check
/**
 * What a pointer does on the map besides zooming and panning: it draws around images, points at one, clicks one. A finger
 * draws, two move and zoom; a mouse draws, and moves with Space held, with another button, or in "Move". Whatever needs a
 * drag has a button too.
 */

const CLICK_DRIFT_PIXELS = 5; // pixels a pointer may stray in a click
const CORNER_GAP_PIXELS = 3; // pixels between two corners of what is drawn
const HOVER_PIXELS = 14; // pixels from a point within which it is meant

/** @typedef {{left: number, top: number}} Place pixels from the corner of the canvas */

export class PointerGestures {
  /**
   * @param {HTMLElement} element that lies over the canvas @param {import("./map_canvas.js").MapCanvas} canvas
   * @param {{onDraw: (place: Place, first: boolean) => void, onDrawn: () => void, onCancel: () => void,
   *          onClick: (place: Place) => void, onHover: (index: number) => void}} on
   *   onDraw     a line is being drawn and has come here
   *   onDrawn    it is finished
   *   onCancel   it was not meant: a second finger came, or the browser took the pointer away
   *   onHover    the index of the point under the pointer, -1 for none; once a frame at most
   */
  constructor(element, canvas, on) {
    this.element = element;
    this.canvas = canvas;
    this.on = on;
    /** Whether a plain drag moves the map. */
    this.moving = false;
    this.spaceHeld = false;
    this.spaceUsed = false;
    /** Where the pointer was last, until the next frame asks what is there. @type {Place | null} */
    this.hovered = null;
    canvas.view.listen(element, (event) => this.#press(event));
    element.addEventListener("pointermove", (event) => event.pointerType === "mouse" && !event.buttons && this.#hover(this.#place(event)));
    element.addEventListener("pointerleave", () => this.#hover(null));
    element.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  /** Space was pressed. */
  holdSpace() {
    this.spaceHeld = true;
    this.spaceUsed = false;
    this.element.classList.add("moving");
  }

  /** Space was let go. @returns {boolean} whether it was held for nothing, that is, only pressed */
  releaseSpace() {
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

  /** Move the map. @param {Place} start @param {boolean} centers whether a click brings its place to the middle */
  #pan(start, centers) {
    return {
      ...this.canvas.view.panning,
      end: (/** @type {import("../shared/panzoom.js").Place} */ at) => {
        const place = this.#toCanvas(at);
        if (centers && measureDistance(start, place) <= CLICK_DRIFT_PIXELS) this.canvas.center(place.left, place.top);
      },
    };
  }

  /** Draw a line, or click where the pointer does not move. @param {Place} start */
  #draw(start) {
    let last = start;
    let drawing = false;
    return {
      move: (/** @type {import("../shared/panzoom.js").Place} */ at) => {
        const place = this.#toCanvas(at);
        if (!drawing && measureDistance(start, place) > CLICK_DRIFT_PIXELS) {
          drawing = true;
          this.on.onDraw(start, true);
        }
        if (!drawing || measureDistance(last, place) < CORNER_GAP_PIXELS) return;
        last = place;
        this.on.onDraw(place, false);
      },
      end: (/** @type {import("../shared/panzoom.js").Place} */ at) => (drawing ? this.on.onDrawn() : this.on.onClick(this.#toCanvas(at))),
      cancel: () => drawing && this.on.onCancel(),
    };
  }

  /** @param {import("../shared/panzoom.js").Place} at from the middle @returns {Place} */
  #toCanvas({ x, y }) {
    return { left: x + this.canvas.width / 2, top: y + this.canvas.height / 2 };
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
        if (last) this.on.onHover(this.canvas.nearest(last.left, last.top, HOVER_PIXELS));
      });
    }
  }
}

/** @param {Place} from @param {Place} to */
function measureDistance(from, to) {
  return Math.hypot(from.left - to.left, from.top - to.top);
}
