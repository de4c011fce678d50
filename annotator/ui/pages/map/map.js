// @ts-check
/**
 * The map: every image is a point, similar images are close. The images inside a drawn outline can be sent to the grid,
 * to be answered there. The page stores no decisions and holds no leases.
 */

import { Api, ApiError } from "../shared/api.js";
import { PointColors } from "./point_colors.js";
import { capitalize, el, formatCount, kbd, keyButton } from "../shared/dom.js";
import { FIX_KEY, openInAnnotate } from "../shared/fix_link.js";
import { PointerGestures } from "./pointer_gestures.js";
import { HelpDialog } from "../shared/help.js";
import { HintRow } from "../shared/hints.js";
import { ImageFinder } from "../shared/image_finder.js";
import { isTyping, listenToKeys } from "../shared/keys.js";
import { MapCard } from "./map_card.js";
import { MapData } from "./map_data.js";
import { Crosshair, KEY_HELP } from "./crosshair.js";
import { MapCanvas } from "./map_canvas.js";

const REFRESH_MILLISECONDS = 10_000; // milliseconds between two requests for the colors
const NO_MAP_REFRESH_MILLISECONDS = 3000;
const CLICK_PIXELS = 14; // pixels from a point within which a click means it

const PAGE_HINTS = [
  { at: ".field", by: "select", text: "Each point is an image; similar images are close together. Draw around points to select them." },
  { at: ".maptools", by: "view", text: "Scroll to zoom; click a point to enlarge its image." },
];

export default class MapPage {
  constructor({ data, parentElement, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    this.api = new Api(data.token);
    this.data = new MapData(this.api);
    this.names = new Map();
    this.canvas = new MapCanvas();
    this.pointColors = new PointColors(data.facts, () => this.#onColorsChange());
    this.card = new MapCard(this.api, (id) => this.names.get(id) ?? `class ${id}`);
    this.help = new HelpDialog(KEY_HELP);
    this.hints = new HintRow("map", data.annotator, PAGE_HINTS);
    this.images = new ImageFinder(this.api, openInAnnotate);
    this.selection = { id: "", images: 0 };
    this.crosshair = new Crosshair(this.canvas, {
      onPoint: (index) => this.#onPoint(index),
      onRectangle: (closed) => this.#onOutline(closed),
    });
    this.#build(parentElement.querySelector(".root"));
    this.gestures = new PointerGestures(this.field, this.canvas, {
      onDraw: (place, first) => this.#draw(place, first),
      onDrawn: () => this.#onOutline(true),
      onCancel: () => this.#drop(),
      onClick: (place) => this.#click(place),
      onHover: (index) => this.#hover(index),
    });
    this.stopListening = listenToKeys(parentElement, (key, event) => this.#key(key, event), (key) => this.#onKeyUp(key));
    this.sizes = new ResizeObserver(() => this.canvas.resize(this.field.clientWidth, this.field.clientHeight));
    this.sizes.observe(this.field);
    this.theme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => window.setTimeout(() => this.#loadColors(), 300); // once Streamlit has changed its colors, too
    this.theme.addEventListener("change", this.repaint);
    this.comeBack = () => document.hidden || this.#refresh();
    document.addEventListener("visibilitychange", this.comeBack);
    this.timer = 0;
    this.closed = false;
    this.update({ data });
    this.#refresh();
  }

  /** @param {any} component */
  update({ data }) {
    this.api.token = data.token;
    this.names = new Map(data.classes.map((class_) => [class_.id, class_.name]));
    this.pointColors.setClasses(data.classes);
  }

  unmount() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stopListening();
    this.sizes.disconnect();
    this.theme.removeEventListener("change", this.repaint);
    document.removeEventListener("visibilitychange", this.comeBack);
  }

  /** @param {HTMLElement} root */
  #build(root) {
    this.empty = el("p", { class: "empty", hidden: true });
    this.count = el("p", { class: "quiet count-line" });
    this.words = el("p", { class: "words", role: "status" });
    this.field = el("div", {
      class: "field", tabindex: "0", role: "application",
      "aria-label": "Map of the images. Arrow keys go from image to image, Enter starts and finishes a rectangle, ? lists all keys.",
    });
    this.send = el("button", { type: "button", class: "main", "aria-keyshortcuts": "g", disabled: true, onclick: () => this.#send() });
    this.clear = el("button", { type: "button", "aria-keyshortcuts": "Escape", disabled: true, onclick: () => this.#drop() },
      el("span", {}, "Clear selection"), kbd("Esc"));
    this.modes = [["Select", false], ["Move", true]].map(([text, moving]) =>
      el("button", { type: "button", "aria-pressed": String(!moving), onclick: () => this.#setMoving(Boolean(moving)) }, String(text)));
    const tools = el("div", { class: "maptools", role: "group", "aria-label": "View" },
      el("button", { type: "button", "aria-label": "Zoom in", "aria-keyshortcuts": "PageUp", onclick: () => this.canvas.view.step(1) }, "+"),
      el("button", { type: "button", "aria-label": "Zoom out", "aria-keyshortcuts": "PageDown", onclick: () => this.canvas.view.step(-1) }, "−"),
      el("button", { type: "button", "aria-label": "Whole map", "aria-keyshortcuts": "Home", onclick: () => this.canvas.view.showAll() }, "⤢"));
    const left = el("div", { class: "left" },
      el("div", { class: "plane" }, this.canvas.base, this.canvas.over, this.field, this.empty, this.card.element, tools),
      this.count);
    const side = el("div", { class: "side" },
      this.pointColors.element,
      el("section", { class: "selecting", "aria-label": "Selection" },
        el("h3", {}, "Selection"),
        el("div", { class: "switch", role: "group", "aria-label": "Drag to" }, ...this.modes),
        keyButton("Select all in view", "a", () => this.#selectView()),
        this.send, this.clear, this.words),
      el("div", { class: "tools" }, keyButton("Keys", "?", () => this.help.open())));
    root.classList.add("map");
    root.replaceChildren(el("div", { class: "work" }, left, side), this.hints.element, this.help.dialog, this.card.dialog, this.images.dialog);
    this.#showSelection();
  }

  // Loading

  async #refresh() {
    clearTimeout(this.timer);
    try {
      if (!this.data.stamp) await this.#read();
      await this.#loadColors();
      this.#trouble("");
    } catch (error) {
      this.#trouble(error.message);
      if (error instanceof ApiError && error.status === 401) this.renew();
    }
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => (document.hidden ? null : this.#refresh()), this.data.stamp ? REFRESH_MILLISECONDS : NO_MAP_REFRESH_MILLISECONDS);
  }

  async #read() {
    await this.data.readPoints();
    this.canvas.points = this.data.points;
    this.canvas.kindOf = new Uint8Array(this.data.points.ids.length);
    this.canvas.ringed = -1;
    this.card.hide();
    this.crosshair.hide();
    this.canvas.redraw();
    const { of, images, points } = this.data;
    const number = (/** @type {number} */ value) => value.toLocaleString("en");
    const drawn = points.ids.length < of ? `${number(points.ids.length)} of ${formatCount(of, "image")} drawn; a selection includes all of them. ` : `${formatCount(of, "image")}. `;
    const later = images > of ? `${formatCount(images - of, "new image")} not on the map yet.` : "";
    this.count.replaceChildren(of ? drawn + later : "");
    this.hints.followSoon();
    this.empty.hidden = of > 0;
    this.empty.replaceChildren(images
      ? "The map is being made. It appears once every image has been analyzed."
      : "No images yet.");
    this.field.dataset.points = String(points.ids.length);
  }

  async #loadColors() {
    if (!this.data.stamp) return;
    const wanted = this.pointColors.colorRequest;
    const colors = await this.data.readColors(wanted);
    if (!colors) {
      this.data.stamp = 0; // another map: read it at once
      this.#refresh();
      return;
    }
    const current = this.pointColors.colorRequest;
    if (JSON.stringify(current) !== JSON.stringify(wanted)) return; // changed meanwhile, and asked for already
    Object.assign(this.canvas, this.pointColors.classifyPoints(colors.bytes, colors.meaning));
    this.canvas.redraw();
  }

  /** Somebody has chosen other colors. */
  async #onColorsChange() {
    try {
      await this.#loadColors();
      this.#trouble("");
    } catch (error) {
      this.#trouble(error.message);
    }
  }

  /** @param {string} text */
  #trouble(text) {
    this.count.classList.toggle("trouble", Boolean(text));
    if (text) this.count.replaceChildren(`${capitalize(text)}. Trying again.`);
  }

  // Pointing

  /** @param {number} index */
  #hover(index) {
    this.#ring(index);
    this.field.classList.toggle("over", index >= 0);
  }

  /** @param {number} index */
  async #onPoint(index) {
    this.#ring(index);
    const words = index < 0 ? "" : await this.card.describeImage(this.data.points.ids[index]);
    if (this.crosshair.index === index) this.words.replaceChildren(words);
  }

  /** @param {number} index */
  #ring(index) {
    this.canvas.ringed = index;
    this.canvas.redrawOver();
    if (index < 0) this.card.hide();
    else this.card.show(this.data.points.ids[index], ...this.canvas.toScreen(this.data.points.x[index], this.data.points.y[index]));
  }

  /** @param {{left: number, top: number}} place */
  #click({ left, top }) {
    this.crosshair.hide();
    const index = this.canvas.nearest(left, top, CLICK_PIXELS);
    if (index >= 0) {
      this.hints.noteUse("view");
      this.card.open(this.data.points.ids[index]);
    }
    else if (this.canvas.polygon.length) this.#drop();
    this.canvas.redrawOver();
  }

  // Selecting

  /** @param {{left: number, top: number}} place @param {boolean} first */
  #draw({ left, top }, first) {
    if (first) {
      this.crosshair.hide();
      this.#drop();
    }
    this.canvas.polygon.push(this.canvas.toMap(left, top));
    this.canvas.redrawOver();
  }

  #selectView() {
    this.crosshair.drop();
    this.canvas.polygon = this.canvas.corners;
    this.#onOutline(true);
  }

  /** @param {boolean} closed whether the outline is finished */
  async #onOutline(closed) {
    this.canvas.closed = closed;
    this.canvas.redrawOver();
    this.selection = { id: "", images: 0 };
    this.#showSelection();
    const polygon = this.canvas.polygon;
    if (!closed || polygon.length < 3 || !this.data.stamp) return;
    try {
      const answer = await this.api.post("/api/map/select", { polygon });
      if (this.canvas.polygon !== polygon) return; // another one since
      this.selection = { id: answer.selection, images: answer.kept };
      const more = answer.kept < answer.images ? ` An even sample of ${answer.kept.toLocaleString("en")} will be sent.` : "";
      this.words.replaceChildren(answer.images ? `${formatCount(answer.images, "image")} selected.${more}` : "No image inside.");
      this.hints.noteUse("select");
    } catch (error) {
      this.words.replaceChildren(`${capitalize(error.message)}. Nothing was selected.`);
      if (error instanceof ApiError && error.status === 401) this.renew();
    }
    this.#showSelection();
  }

  #drop() {
    this.crosshair.drop();
    this.canvas.polygon = [];
    this.canvas.closed = false;
    this.selection = { id: "", images: 0 };
    this.words.replaceChildren("");
    this.canvas.redrawOver();
    this.#showSelection();
  }

  #showSelection() {
    const { id, images: count } = this.selection;
    this.send.disabled = !id;
    this.send.replaceChildren(el("span", {}, id ? `Send ${formatCount(count, "image")} to the grid` : "Send to the grid"), kbd("g"));
    this.clear.disabled = !this.canvas.polygon.length;
  }

  #send() {
    if (this.selection.id) window.location.href = new URL(`grid?selection=${this.selection.id}`, window.location.href).href;
  }

  /** @param {boolean} moving */
  #setMoving(moving) {
    this.gestures.setMoving(moving);
    this.modes.forEach((button, at) => button.setAttribute("aria-pressed", String(Boolean(at) === moving)));
  }

  // Keys

  /** @param {string} key @param {KeyboardEvent} event */
  #key(key, event) {
    if (this.help.isOpen) return this.help.key(key);
    if (this.images.isOpen) return this.images.key(key, event);
    if (key === FIX_KEY) return this.#fix();
    if (key === "images") {
      if (!this.card.dialog.open) this.images.open();
      return true;
    }
    if (this.card.dialog.open || isTyping(event)) return false;
    if (this.crosshair.arrow(key, event.shiftKey) || this.#onZoom(key)) return true;
    const act = {
      Enter: () => this.crosshair.enter(),
      Escape: () => this.#drop(),
      " ": () => this.gestures.holdSpace(),
      a: () => this.#selectView(),
      g: () => this.#send(),
      "?": () => this.help.open(),
      F1: () => this.help.open(),
    }[key];
    if (!act) return false;
    if (!event.repeat) act();
    return true;
  }

  /** The image that is open in large, or at the crosshair. */
  #fix() {
    const { index } = this.crosshair;
    if (this.card.dialog.open) openInAnnotate(this.card.opened);
    else if (index >= 0) openInAnnotate(this.data.points.ids[index]);
    return true;
  }

  /** @param {string} key */
  #onKeyUp(key) {
    if (key === " " && this.gestures.releaseSpace() && this.crosshair.index >= 0 && !this.card.dialog.open) {
      this.card.open(this.data.points.ids[this.crosshair.index]);
    }
  }

  /** A key zooms, around the crosshair where there is one. @param {string} key */
  #onZoom(key) {
    const { canvas, crosshair } = this;
    const [left, top] = canvas.crosshair ? canvas.toScreen(...canvas.crosshair) : [canvas.width / 2, canvas.height / 2];
    if (!canvas.view.key(key, { x: left - canvas.width / 2, y: top - canvas.height / 2 })) return false;
    if (key !== "Home" && crosshair.index >= 0) this.#ring(crosshair.index);
    return true;
  }
}
