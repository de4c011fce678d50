// @ts-check
/**
 * The stage shows one picture: whole, closer, brighter, moved about. Zoom and pan are one transform of the frame, so
 * that whatever lies over the picture goes along; brightness is a filter of the picture alone.
 *
 * A new picture is one replaceChildren of the frame. The style sheet sizes the frame (container units), so nothing is
 * measured until somebody zooms.
 */

import { el } from "./dom.js";
import { PanZoom } from "./panzoom.js";

const MAX_ZOOM = 12; // times fit, or four times 1:1 where that is more
const PAN_SHARE = 0.2; // of the stage, one press
const BRIGHTNESS_STEP = 1.25;
const MIN_BRIGHTNESS = 0.4;
const MAX_BRIGHTNESS = 4;
const SWIPE_PIXELS = 90; // CSS pixels
const TAP_PIXELS = 8; // less than this is no movement

const HALF_DISC_PATHS = ["M9 8a6 6 0 1 0 0 12 6 6 0 1 0 0-12", "M8.6 9v10M6.8 10v8M5 12v4"];

/** Shapes of 24 x 24, drawn with a line. */
const ICON_PATHS = {
  closer: ["M12 5v14", "M5 12h14"],
  further: ["M5 12h14"],
  whole: ["M4 9V4h5", "M20 9V4h-5", "M4 15v5h5", "M20 15v5h-5"],
  // The half-filled disc of screens and cameras: a moon and a sun would be a theme.
  darker: [...HALF_DISC_PATHS, "M16 5h6"],
  brighter: [...HALF_DISC_PATHS, "M19 2v6", "M16 5h6"],
};

/** Rows for the help overlay of every page with a stage. @type {[string | string[], string][]} */
export const STAGE_KEYS = [
  [["PageUp", "PageDown"], "zoom in, zoom out (also scroll, or pinch)"],
  ["Home", "fit the window, or actual pixels (1:1)"],
  [["Shift", "Arrow keys"], "move the picture (also by dragging)"],
  [["Shift", "PageUp", "PageDown"], "picture brighter, darker; with Home back to normal (the file is not changed)"],
];

export class ImageStage {
  /**
   * @param {{onSwipe?: (way: "left" | "right") => void, words?: {left: string, right: string}}} [options]
   *   onSwipe  a finger drew the whole picture to that side; words say what that will do, while it is being drawn
   */
  constructor({ onSwipe, words } = {}) {
    this.onSwipe = onSwipe;
    this.words = words ?? { left: "", right: "" };
    this.item = null;
    this.brightness = 1;
    this.sharp = false;
    this.frame = el("div", { class: "frame" });
    this.message = el("div", { class: "empty", hidden: true });
    this.badge = el("div", { class: "swipe", "aria-hidden": "true" });
    this.tools = this.#buildTools();
    this.element = el("div", { class: "stage" }, this.frame, this.message, this.badge, this.tools);
    this.view = new PanZoom({
      sizes: () => ({
        content: [this.frame.offsetWidth, this.frame.offsetHeight],
        window: [this.element.clientWidth, this.element.clientHeight],
      }),
      scales: () => this.item && [Math.min(1, this.#measureActualScale()), Math.max(MAX_ZOOM, 4 * this.#measureActualScale())],
      onView: () => this.#draw(),
      onHome: () => this.fitOrPixels(),
    });
    this.view.listen(this.element, (event, at) => this.#press(event, at));
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
    if (this.view.scale !== 1) this.view.showAll();
  }

  /** Words instead of a picture, and what may be pressed. @param {string} text @param {Element[]} more */
  showText(text, ...more) {
    // Said already: what is in it may have the focus.
    const words = text + more.map((node) => node.textContent).join("");
    if (!this.item && !this.message.hidden && this.message.textContent === words) return;
    this.item = null;
    this.frame.replaceChildren();
    this.message.hidden = false;
    this.message.replaceChildren(text, ...more);
    if (this.view.scale !== 1) this.view.showAll();
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} whether the key was the stage's */
  key(key, event) {
    if (!event.shiftKey) return this.view.key(key);
    const act = {
      PageUp: () => this.changeBrightness(BRIGHTNESS_STEP),
      PageDown: () => this.changeBrightness(1 / BRIGHTNESS_STEP),
      Home: () => this.changeBrightness(0),
      ArrowLeft: () => this.pan(1, 0),
      ArrowRight: () => this.pan(-1, 0),
      ArrowUp: () => this.pan(0, 1),
      ArrowDown: () => this.pan(0, -1),
    }[key];
    act?.();
    return Boolean(act);
  }

  /** From anything else to the whole picture, from there to one pixel of the picture for one of the screen. */
  fitOrPixels() {
    if (!this.item) return;
    if (this.view.scale !== 1) this.view.showAll();
    else this.view.place(this.#measureActualScale(), 0, 0);
  }

  /** @param {number} right @param {number} down in steps, the way the picture moves */
  pan(right, down) {
    const { clientWidth, clientHeight } = this.element;
    this.view.panBy(right * PAN_SHARE * clientWidth, down * PAN_SHARE * clientHeight);
  }

  /** @param {number} factor 0: as the picture is */
  changeBrightness(factor) {
    const next = factor === 0 ? 1 : Math.min(Math.max(this.brightness * factor, MIN_BRIGHTNESS), MAX_BRIGHTNESS);
    this.brightness = Math.abs(next - 1) < 0.01 ? 1 : next;
    // No filter at all where none is wanted: each costs every new picture a little.
    this.element.classList.toggle("lit", this.brightness !== 1);
    this.element.style.setProperty("--brightness", String(this.brightness));
    this.#showLevel();
  }

  #buildTools() {
    this.fitButton = buildToolButton("whole", "Fit, or actual pixels", "Home", () => this.fitOrPixels());
    this.level = el("span", { class: "level", role: "status", "aria-label": "View" });
    return el(
      "div",
      { class: "stage-tools", role: "toolbar", "aria-label": "View of the picture" },
      this.level,
      buildToolButton("further", "Zoom out", "PageDown", () => this.view.step(-1)),
      buildToolButton("closer", "Zoom in", "PageUp", () => this.view.step(1)),
      this.fitButton,
      buildToolButton("darker", "Darker picture", "Shift+PageDown", () => this.changeBrightness(1 / BRIGHTNESS_STEP)),
      buildToolButton("brighter", "Brighter picture", "Shift+PageUp", () => this.changeBrightness(BRIGHTNESS_STEP)),
    );
  }

  /** The scale at which one pixel of the picture is one of the screen. */
  #measureActualScale() {
    const shown = this.frame.offsetWidth || 1;
    return this.item.width / (shown * (window.devicePixelRatio || 1));
  }

  /** Put the frame where the view has it. */
  #draw() {
    const { scale, x, y } = this.view;
    this.frame.style.transform = scale === 1 ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
    this.frame.style.setProperty("--zoom", String(scale)); // lines over the picture stay as thin as they are
    this.element.classList.toggle("zoomed", scale > 1);
    if (scale > 1) this.#sharpen();
    this.#showLevel();
  }

  #showLevel() {
    const words = [];
    const { scale } = this.view;
    if (scale !== 1 && this.item) words.push(`${Math.round((100 * scale) / this.#measureActualScale())} %`);
    if (this.brightness !== 1) words.push(`brightness ${Math.round(100 * this.brightness)} %`);
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

  /**
   * What a pressed pointer does: a finger on the whole picture may swipe, all else pans.
   * @param {PointerEvent} event @param {import("./panzoom.js").Place} start
   */
  #press(event, start) {
    const target = /** @type {Element} */ (event.target);
    if (!this.item || event.button !== 0 || target.closest("button, a, input")) return null;
    if (!this.onSwipe || event.pointerType === "mouse" || this.view.scale !== 1) return this.view.panning;
    return {
      move: (/** @type {{x: number}} */ at) => this.#drawSwipe(at.x - start.x),
      end: (/** @type {{x: number}} */ at) => {
        this.#dropSwipe();
        const by = at.x - start.x;
        if (Math.abs(by) >= SWIPE_PIXELS) this.onSwipe(by > 0 ? "right" : "left");
      },
      cancel: () => this.#dropSwipe(),
    };
  }

  /** @param {number} by CSS pixels to the right */
  #drawSwipe(by) {
    if (Math.abs(by) < TAP_PIXELS) return;
    const way = by > 0 ? "right" : "left";
    this.frame.style.transform = `translateX(${by}px)`;
    this.badge.dataset.way = way;
    this.badge.classList.toggle("far", Math.abs(by) >= SWIPE_PIXELS);
    if (this.badge.textContent !== this.words[way]) this.badge.replaceChildren(this.words[way]);
  }

  #dropSwipe() {
    if (!this.badge.dataset.way) return;
    this.badge.dataset.way = "";
    this.#draw();
  }
}

/** @param {keyof typeof ICON_PATHS} shape @param {string} name @param {string} key @param {() => void} act */
function buildToolButton(shape, name, key, act) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  for (const line of ICON_PATHS[shape]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", line);
    svg.append(path);
  }
  const props = { type: "button", "aria-label": name, title: `${name} (${key})`, "aria-keyshortcuts": key, onclick: act };
  return el("button", props, svg);
}
