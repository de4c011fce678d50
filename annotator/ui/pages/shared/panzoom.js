// @ts-check
/**
 * Pan and zoom of whatever fills an element: the picture of a stage, the points of the map. It holds the view (scale and
 * offset), keeps it within its limits, and turns wheel, touch pad, drags, fingers and keys into it. Drawing is the owner's.
 */

const ZOOM_STEP = 1.4; // one press of a zoom key
const WHEEL_EXPONENT = 0.002; // the exponent that a pixel of the wheel adds
const TOUCH_PAD = 0.01; // the same for a pinch on a touch pad, which arrives as a small wheel with Ctrl
const WHEEL_LINE_PIXELS = 16; // pixels, where the wheel counts lines
const SNAP_SCALE = 0.001; // a scale as close to 1 as this is 1

/** @typedef {{x: number, y: number}} Place in CSS pixels from the middle of the element */
/**
 * @typedef {{move: (at: Place, before: Place) => void, end?: (at: Place) => void, cancel?: () => void}} Drag
 *   end     the pointer was lifted
 *   cancel  it was not meant: a second finger came, or the browser took the pointer away
 */

const MIDDLE_PLACE = { x: 0, y: 0 };

export class PanZoom {
  /**
   * @param {{sizes: () => {content: number[], window: number[]}, scales: () => number[] | null, onView: () => void,
   *          onHome?: () => void, step?: number}} options
   *   sizes   [width, height] in CSS pixels of the content at scale 1 and of the part of the element it may fill
   *   scales  the smallest and the largest scale, where 1 shows the whole content; null while there is nothing to see
   *   onView  draw the view: `scale`, and the offset `x`, `y` of the content's middle from the element's
   *   onHome  the Home key; shows the whole content unless given
   */
  constructor({ sizes, scales, onView, onHome, step = ZOOM_STEP }) {
    this.sizes = sizes;
    this.scales = scales;
    this.onView = onView;
    this.onHome = onHome ?? (() => this.showAll());
    this.keyStep = step;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    /** Pointers that are down. @type {Map<number, Place>} */
    this.pointers = new Map();
    /** What the first of them does. @type {Drag | null} */
    this.drag = null;
    /** The drag that moves the view. @type {Drag} */
    this.panning = { move: (at, before) => this.panBy(at.x - before.x, at.y - before.y) };
  }

  /**
   * Listen to wheel and pointers.
   * @param {HTMLElement} element
   * @param {(event: PointerEvent, at: Place) => Drag | null} onPress what the pressed pointer does; null: it is not for us
   */
  listen(element, onPress) {
    this.element = element;
    this.onPress = onPress;
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    element.addEventListener("pointerdown", (event) => this.#down(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerup", (event) => this.#up(event));
    element.addEventListener("pointercancel", (event) => this.#up(event));
  }

  /** Whether the key changes the view. @param {string} key @param {Place} [at] what stays where it is */
  key(key, at) {
    const act = { PageUp: () => this.step(1, at), PageDown: () => this.step(-1, at), Home: () => this.onHome() }[key];
    act?.();
    return Boolean(act);
  }

  /** One step closer, or back. @param {1 | -1} way @param {Place} [at] what stays where it is */
  step(way, at) {
    this.zoom(this.keyStep ** way, at);
  }

  /** @param {number} factor @param {Place} [at] what stays where it is @param {Place} [to] or comes to be here */
  zoom(factor, at = MIDDLE_PLACE, to = at) {
    const limits = this.scales();
    if (!limits) return;
    const wanted = Math.min(Math.max(this.scale * factor, limits[0]), limits[1]);
    // A zoom that passes the whole content stops there: nobody means 97 %.
    const scale = (this.scale - 1) * (wanted - 1) < 0 ? 1 : wanted;
    const by = scale / this.scale;
    this.place(scale, to.x - (at.x - this.x) * by, to.y - (at.y - this.y) * by);
  }

  /** @param {number} right @param {number} down CSS pixels by which the content moves */
  panBy(right, down) {
    if (this.scales() && this.scale !== 1) this.place(this.scale, this.x + right, this.y + down);
  }

  showAll() {
    this.place(1, 0, 0);
  }

  /** @param {number} scale @param {number} x @param {number} y CSS pixels; an edge of the content never comes inside the window */
  place(scale, x, y) {
    this.scale = Math.abs(scale - 1) < SNAP_SCALE ? 1 : scale;
    if (this.scale === 1) this.x = this.y = 0; // nothing is measured for the usual view
    else {
      const { content, window } = this.sizes();
      const [across, down] = content.map((size, axis) => Math.max(0, (size * this.scale - window[axis]) / 2));
      this.x = Math.min(Math.max(x, -across), across);
      this.y = Math.min(Math.max(y, -down), down);
    }
    this.onView();
  }

  /** @param {MouseEvent} event @returns {Place} */
  from(event) {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left - box.width / 2, y: event.clientY - box.top - box.height / 2 };
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    const limits = this.scales();
    if (!limits || (event.deltaY > 0 && this.scale <= limits[0])) return; // nothing further out: the page scrolls
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_LINE_PIXELS : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? TOUCH_PAD : WHEEL_EXPONENT)), this.from(event));
  }

  /** @param {PointerEvent} event */
  #down(event) {
    const at = this.from(event);
    const drag = this.onPress(event, at);
    if (!drag) return;
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size > 1) this.drag?.cancel?.();
    this.drag = this.pointers.size > 1 ? this.panning : drag;
    // The pointer is held, so that a drag that leaves the element goes on, and its end is always heard.
    this.element.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const at = this.from(event);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size === 1) this.drag?.move(at, before);
    else if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const spread = (/** @type {Place} */ place) => Math.hypot(place.x - other.x, place.y - other.y);
      const middle = (/** @type {Place} */ place) => ({ x: (place.x + other.x) / 2, y: (place.y + other.y) / 2 });
      this.zoom(spread(at) / Math.max(spread(before), 1), middle(before), middle(at));
    }
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    const { drag } = this;
    if (!this.pointers.size) this.drag = null;
    if (event.type === "pointercancel") drag?.cancel?.();
    else drag?.end?.(this.from(event));
  }
}
