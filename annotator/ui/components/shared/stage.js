// @ts-check
/**
 * The place where a picture is looked at: fit, closer, brighter, moved about. Zoom and pan are one transform of the
 * frame, so that whatever lies over the picture goes along; brightness is a filter of the picture alone.
 *
 * A new picture is one replaceChildren of the frame. The frame's size is the style sheet's affair (container units), so
 * nothing is measured until somebody zooms.
 */

import { el } from "./dom.js";

const STEP = 1.4; // one press of a zoom key
const CLOSEST = 12; // times fit, or four times 1:1 where that is more
const PAN = 0.2; // of the stage, one press
const BRIGHTER = 1.25;
const DARKEST = 0.4;
const BRIGHTEST = 4;
const SWIPE = 90; // CSS pixels
const TAP = 8; // less than this is no movement

/** Shapes of 24 x 24, drawn with a line. */
const SHAPES = {
  closer: ["M12 5v14", "M5 12h14"],
  further: ["M5 12h14"],
  whole: ["M4 9V4h5", "M20 9V4h-5", "M4 15v5h5", "M20 15v5h-5"],
  darker: ["M20 14.5A8.5 8.5 0 1 1 9.5 4a6.6 6.6 0 0 0 10.5 10.5z"],
  brighter: ["M12 8a4 4 0 1 0 0 8 4 4 0 1 0 0-8", "M12 2v3", "M12 19v3", "M2 12h3", "M19 12h3", "M5 5l2 2", "M17 17l2 2", "M5 19l2-2", "M17 7l2-2"],
};

/** Rows for the help overlay of every page with a stage. @type {[string | string[], string][]} */
export const STAGE_KEYS = [
  [["PageUp", "PageDown"], "closer, further away (also the wheel or two fingers)"],
  ["Home", "the whole picture, or every pixel as it is (1:1)"],
  [["Shift", "Arrow keys"], "move about in the picture (also by dragging)"],
  [["Shift", "PageUp", "PageDown"], "brighter, darker; with Home as it was"],
];

export class Stage {
  /**
   * @param {{onSwipe?: (way: "left" | "right") => void, words?: {left: string, right: string}}} [options]
   *   onSwipe  a finger drew the whole picture to that side; words say what that will do, while it is being drawn
   */
  constructor({ onSwipe, words } = {}) {
    this.onSwipe = onSwipe;
    this.words = words ?? { left: "", right: "" };
    this.item = null;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.brightness = 1;
    this.sharp = false;
    /** @type {Map<number, {x: number, y: number}>} fingers, or the mouse, that are down */
    this.pointers = new Map();
    /** @type {{x: number, y: number, pointer: number} | null} */
    this.swipe = null;
    this.frame = el("div", { class: "frame" });
    this.message = el("div", { class: "empty", hidden: true });
    this.badge = el("div", { class: "swipe", "aria-hidden": "true" });
    this.tools = this.#buildTools();
    this.element = el("div", { class: "stage" }, this.frame, this.message, this.badge, this.tools);
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.#down(event));
    this.element.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      this.element.addEventListener(end, (/** @type {any} */ event) => this.#up(event));
    }
  }

  /**
   * Show a picture that is loaded, whole, with what lies over it.
   * @param {any} item {id, width, height, picture} @param {Element[]} [overlays]
   */
  show(item, overlays = []) {
    this.item = item;
    this.sharp = false;
    this.frame.style.setProperty("--ratio", String(item.width / item.height));
    this.frame.replaceChildren(item.picture, ...overlays);
    if (!this.message.hidden) this.message.hidden = true;
    if (this.scale !== 1 || this.x || this.y) this.#place(1, 0, 0);
  }

  /** Words instead of a picture, and what may be pressed. @param {string} text @param {Element[]} more */
  empty(text, ...more) {
    // Said already: what is in it may have the focus.
    const words = text + more.map((one) => one.textContent).join("");
    if (!this.item && !this.message.hidden && this.message.textContent === words) return;
    this.item = null;
    this.frame.replaceChildren();
    this.message.hidden = false;
    this.message.replaceChildren(text, ...more);
    if (this.scale !== 1 || this.x || this.y) this.#place(1, 0, 0);
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} whether the key was the stage's */
  key(key, event) {
    const plain = { PageUp: () => this.zoom(STEP), PageDown: () => this.zoom(1 / STEP), Home: () => this.fitOrPixels() };
    const shifted = {
      PageUp: () => this.lighten(BRIGHTER),
      PageDown: () => this.lighten(1 / BRIGHTER),
      Home: () => this.lighten(0),
      ArrowLeft: () => this.pan(1, 0),
      ArrowRight: () => this.pan(-1, 0),
      ArrowUp: () => this.pan(0, 1),
      ArrowDown: () => this.pan(0, -1),
    };
    const act = (event.shiftKey ? shifted : plain)[key];
    if (!act) return false;
    act();
    return true;
  }

  /** @param {number} factor @param {{x: number, y: number}} [at] from the middle of the stage: what stays where it is */
  zoom(factor, at = { x: 0, y: 0 }) {
    if (!this.item) return;
    const pixels = this.#pixels();
    const scale = Math.min(Math.max(this.scale * factor, Math.min(1, pixels)), Math.max(CLOSEST, 4 * pixels));
    // Passing by the whole picture, the hand stops there: nobody means 97 %.
    const next = (this.scale - 1) * (scale - 1) < 0 ? 1 : scale;
    const by = next / this.scale;
    this.#place(next, at.x - (at.x - this.x) * by, at.y - (at.y - this.y) * by);
  }

  /** From anything else to the whole picture, from there to one pixel of the picture for one of the screen. */
  fitOrPixels() {
    if (!this.item) return;
    if (this.scale !== 1) this.#place(1, 0, 0);
    else this.#place(this.#pixels(), 0, 0);
  }

  /** @param {number} right @param {number} down in steps, the way the picture moves */
  pan(right, down) {
    if (!this.item) return;
    const { clientWidth, clientHeight } = this.element;
    this.#place(this.scale, this.x + right * PAN * clientWidth, this.y + down * PAN * clientHeight);
  }

  /** @param {number} factor 0: as the picture is */
  lighten(factor) {
    const next = factor === 0 ? 1 : Math.min(Math.max(this.brightness * factor, DARKEST), BRIGHTEST);
    this.brightness = Math.abs(next - 1) < 0.01 ? 1 : next;
    // No filter at all where none is wanted: each costs every new picture a little.
    this.element.classList.toggle("lit", this.brightness !== 1);
    this.element.style.setProperty("--brightness", String(this.brightness));
    this.#say();
  }

  #buildTools() {
    this.fitButton = toolButton("whole", "Whole picture or 1:1", "Home", () => this.fitOrPixels());
    this.level = el("span", { class: "level", role: "status", "aria-label": "View" });
    return el(
      "div",
      { class: "stage-tools", role: "toolbar", "aria-label": "View of the picture" },
      this.level,
      toolButton("further", "Further away", "PageDown", () => this.zoom(1 / STEP)),
      toolButton("closer", "Closer", "PageUp", () => this.zoom(STEP)),
      this.fitButton,
      toolButton("darker", "Darker", "Shift+PageDown", () => this.lighten(1 / BRIGHTER)),
      toolButton("brighter", "Brighter", "Shift+PageUp", () => this.lighten(BRIGHTER)),
    );
  }

  /** The scale at which one pixel of the picture is one of the screen. */
  #pixels() {
    const shown = this.frame.offsetWidth || 1;
    return this.item.width / (shown * (window.devicePixelRatio || 1));
  }

  /** @param {number} scale @param {number} x @param {number} y of the frame's middle from the stage's, CSS pixels */
  #place(scale, x, y) {
    this.scale = Math.abs(scale - 1) < 0.001 ? 1 : scale;
    if (this.scale === 1) {
      this.x = this.y = 0;
      this.frame.style.transform = "";
    } else {
      const roomX = Math.max(0, (this.frame.offsetWidth * this.scale - this.element.clientWidth) / 2);
      const roomY = Math.max(0, (this.frame.offsetHeight * this.scale - this.element.clientHeight) / 2);
      this.x = Math.min(Math.max(x, -roomX), roomX);
      this.y = Math.min(Math.max(y, -roomY), roomY);
      this.frame.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    }
    this.element.classList.toggle("zoomed", this.scale > 1);
    if (this.scale > 1) this.#sharpen();
    this.#say();
  }

  #say() {
    const words = [];
    if (this.scale !== 1 && this.item) words.push(`${Math.round((100 * this.scale) / this.#pixels())} %`);
    if (this.brightness !== 1) words.push(`light ${Math.round(100 * this.brightness)} %`);
    this.level.replaceChildren(words.join(", "));
  }

  /** Closer than whole, the reduced copy would be seen as one: the picture itself takes its place. */
  #sharpen() {
    const { item } = this;
    if (this.sharp || item.picture.naturalWidth >= item.width) return;
    this.sharp = true;
    const url = new URL(item.picture.src);
    url.searchParams.set("full", "1");
    const full = new Image();
    full.decoding = "sync";
    full.draggable = false;
    full.alt = item.picture.alt;
    full.dataset.image = String(item.id);
    full.src = url.href;
    full
      .decode()
      .then(() => {
        if (this.item === item && item.picture.parentNode === this.frame) item.picture.replaceWith(full);
      })
      .catch(() => {}); // the reduced copy stays, which is better than nothing
  }

  // Hands

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (!this.item || (event.deltaY > 0 && this.scale <= Math.min(1, this.#pixels()))) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const speed = event.ctrlKey ? 0.01 : 0.002; // a pinch on a touch pad comes as a small wheel with Ctrl
    this.zoom(Math.exp(-event.deltaY * lines * speed), this.#from(event));
  }

  /** @param {MouseEvent} event from the middle of the stage */
  #from(event) {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left - box.width / 2, y: event.clientY - box.top - box.height / 2 };
  }

  /** @param {PointerEvent} event */
  #down(event) {
    const target = /** @type {Element} */ (event.target);
    if (!this.item || event.button !== 0 || target.closest("button, a, input")) return;
    this.pointers.set(event.pointerId, this.#from(event));
    const mayswipe = this.onSwipe && event.pointerType !== "mouse" && this.scale === 1 && this.pointers.size === 1;
    this.swipe = mayswipe ? { ...this.#from(event), pointer: event.pointerId } : null;
    if (!mayswipe) this.#dropSwipe();
    // The pointer is held, so that a drag that leaves the stage goes on, and its end is always heard.
    this.element.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.#from(event);
    this.pointers.set(event.pointerId, now);
    if (this.swipe) this.#drawSwipe(now);
    else if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const spread = (/** @type {{x: number, y: number}} */ one) => Math.hypot(one.x - other.x, one.y - other.y);
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
      this.zoom(spread(now) / Math.max(spread(before), 1), middle);
    } else if (this.scale !== 1) this.#place(this.scale, this.x + now.x - before.x, this.y + now.y - before.y);
  }

  /** @param {PointerEvent} event */
  #up(event) {
    const place = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (!this.swipe || this.swipe.pointer !== event.pointerId) return;
    const by = place.x - this.swipe.x;
    this.#dropSwipe();
    if (event.type === "pointerup" && Math.abs(by) >= SWIPE) this.onSwipe(by > 0 ? "right" : "left");
  }

  /** @param {{x: number, y: number}} now */
  #drawSwipe(now) {
    const by = now.x - this.swipe.x;
    if (Math.abs(by) < TAP) return;
    const way = by > 0 ? "right" : "left";
    this.frame.style.transform = `translateX(${by}px)`;
    this.badge.dataset.way = way;
    this.badge.classList.toggle("far", Math.abs(by) >= SWIPE);
    if (this.badge.textContent !== this.words[way]) this.badge.replaceChildren(this.words[way]);
  }

  #dropSwipe() {
    this.swipe = null;
    if (!this.badge.dataset.way) return;
    this.badge.dataset.way = "";
    this.#place(this.scale, this.x, this.y);
  }
}

/** @param {keyof typeof SHAPES} shape @param {string} name @param {string} key @param {() => void} act */
function toolButton(shape, name, key, act) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  for (const line of SHAPES[shape]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", line);
    svg.append(path);
  }
  const props = { type: "button", "aria-label": name, title: `${name} (${key})`, "aria-keyshortcuts": key, onclick: act };
  return el("button", props, svg);
}
