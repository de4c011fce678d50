// @ts-check
/**
 * The map: every image is a point, similar images are close. The images inside a drawn outline can be sent to the grid,
 * to be answered there. The page stores no decisions and holds no leases.
 */

import { Api, ApiError } from "../shared/api.js";
import { Colouring } from "./colouring.js";
import { capital, counted, el, kbd, keyButton } from "../shared/dom.js";
import { FIX_KEY, fix } from "../shared/fix.js";
import { Gestures } from "./gestures.js";
import { Help } from "../shared/help.js";
import { Hints } from "../shared/hints.js";
import { ImageFinder } from "../shared/imagefinder.js";
import { listen, typing } from "../shared/keys.js";
import { MapCard } from "./card.js";
import { MapData } from "./data.js";
import { Crosshair, HELP } from "./crosshair.js";
import { Plane } from "./plane.js";

const REFRESH = 10_000; // milliseconds between two requests for the colours
const REFRESH_WITHOUT_MAP = 3000;
const NEAR = 14; // pixels from a point within which a click means it

const HINTS = [
  { at: ".field", side: "over", by: "select", text: "Each point is an image; similar images are close together. Draw around points to select them." },
  { at: ".maptools", side: "left", by: "view", text: "Scroll to zoom; click a point to enlarge its image." },
];

export default class MapPage {
  constructor({ data, parentElement, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    this.api = new Api(data.token);
    this.data = new MapData(this.api);
    this.names = new Map();
    this.plane = new Plane();
    this.colouring = new Colouring(data.facts, () => this.#coloured());
    this.card = new MapCard(this.api, (id) => this.names.get(id) ?? `class ${id}`);
    this.help = new Help(HELP);
    this.hints = new Hints("map", data.annotator, HINTS);
    this.images = new ImageFinder(this.api, fix);
    this.selection = { id: "", images: 0 };
    this.crosshair = new Crosshair(this.plane, {
      onPoint: (index) => this.#pointed(index),
      onRectangle: (closed) => this.#outlined(closed),
    });
    this.#build(parentElement.querySelector(".root"));
    this.gestures = new Gestures(this.field, this.plane, {
      onDraw: (place, first) => this.#draw(place, first),
      onDrawn: () => this.#outlined(true),
      onCancel: () => this.#drop(),
      onClick: (place) => this.#click(place),
      onHover: (index) => this.#hover(index),
    });
    this.stopListening = listen(parentElement, (key, event) => this.#key(key, event), (key) => this.#released(key));
    this.sizes = new ResizeObserver(() => this.plane.resize(this.field.clientWidth, this.field.clientHeight));
    this.sizes.observe(this.field);
    this.theme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => window.setTimeout(() => this.#colour(), 300); // once Streamlit has changed its colours, too
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
    this.colouring.setClasses(data.classes);
  }

  unmount() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stopListening();
    this.hints.close();
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
      el("button", { type: "button", "aria-label": "Zoom in", "aria-keyshortcuts": "PageUp", onclick: () => this.plane.view.step(1) }, "+"),
      el("button", { type: "button", "aria-label": "Zoom out", "aria-keyshortcuts": "PageDown", onclick: () => this.plane.view.step(-1) }, "−"),
      el("button", { type: "button", "aria-label": "Whole map", "aria-keyshortcuts": "Home", onclick: () => this.plane.view.showAll() }, "⤢"));
    const left = el("div", { class: "left" },
      el("div", { class: "plane" }, this.plane.base, this.plane.over, this.field, this.empty, this.card.element, tools),
      this.count);
    const side = el("div", { class: "side" },
      this.colouring.element,
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
      await this.#colour();
      this.#trouble("");
    } catch (error) {
      this.#trouble(error.message);
      if (error instanceof ApiError && error.status === 401) this.renew();
    }
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => (document.hidden ? null : this.#refresh()), this.data.stamp ? REFRESH : REFRESH_WITHOUT_MAP);
  }

  async #read() {
    await this.data.read();
    this.plane.points = this.data.points;
    this.plane.kindOf = new Uint8Array(this.data.points.ids.length);
    this.plane.ringed = -1;
    this.card.hide();
    this.crosshair.hide();
    this.plane.changed();
    const { of, images, points } = this.data;
    const number = (/** @type {number} */ value) => value.toLocaleString("en");
    const drawn = points.ids.length < of ? `${number(points.ids.length)} of ${counted(of, "image")} drawn; a selection includes all of them. ` : `${counted(of, "image")}. `;
    const later = images > of ? `${counted(images - of, "new image")} not on the map yet.` : "";
    this.count.replaceChildren(of ? drawn + later : "");
    this.hints.moved();
    this.empty.hidden = of > 0;
    this.empty.replaceChildren(images
      ? "The map is being made. It appears once every image has been analyzed."
      : "No images yet.");
    this.field.dataset.points = String(points.ids.length);
  }

  async #colour() {
    if (!this.data.stamp) return;
    const wanted = this.colouring.wanted;
    const colours = await this.data.colours(wanted);
    if (!colours) {
      this.data.stamp = 0; // another map: read it at once
      this.#refresh();
      return;
    }
    const current = this.colouring.wanted;
    if (JSON.stringify(current) !== JSON.stringify(wanted)) return; // changed meanwhile, and asked for already
    Object.assign(this.plane, this.colouring.kinds(colours.bytes, colours.meaning));
    this.plane.changed();
  }

  /** Somebody has chosen other colours. */
  async #coloured() {
    try {
      await this.#colour();
      this.#trouble("");
    } catch (error) {
      this.#trouble(error.message);
    }
  }

  /** @param {string} text */
  #trouble(text) {
    this.count.classList.toggle("trouble", Boolean(text));
    if (text) this.count.replaceChildren(`${capital(text)}. Trying again.`);
  }

  // Pointing

  /** @param {number} index */
  #hover(index) {
    this.#ring(index);
    this.field.classList.toggle("over", index >= 0);
  }

  /** @param {number} index */
  async #pointed(index) {
    this.#ring(index);
    const words = index < 0 ? "" : await this.card.inWords(this.data.points.ids[index]);
    if (this.crosshair.index === index) this.words.replaceChildren(words);
  }

  /** @param {number} index */
  #ring(index) {
    this.plane.ringed = index;
    this.plane.moved();
    if (index < 0) this.card.hide();
    else this.card.show(this.data.points.ids[index], ...this.plane.toScreen(this.data.points.x[index], this.data.points.y[index]));
  }

  /** @param {{left: number, top: number}} place */
  #click({ left, top }) {
    this.crosshair.hide();
    const index = this.plane.nearest(left, top, NEAR);
    if (index >= 0) {
      this.hints.used("view");
      this.card.open(this.data.points.ids[index]);
    }
    else if (this.plane.polygon.length) this.#drop();
    this.plane.moved();
  }

  // Selecting

  /** @param {{left: number, top: number}} place @param {boolean} first */
  #draw({ left, top }, first) {
    if (first) {
      this.crosshair.hide();
      this.#drop();
    }
    this.plane.polygon.push(this.plane.toMap(left, top));
    this.plane.moved();
  }

  #selectView() {
    this.crosshair.drop();
    this.plane.polygon = this.plane.corners;
    this.#outlined(true);
  }

  /** @param {boolean} closed whether the outline is finished */
  async #outlined(closed) {
    this.plane.closed = closed;
    this.plane.moved();
    this.selection = { id: "", images: 0 };
    this.#showSelection();
    const polygon = this.plane.polygon;
    if (!closed || polygon.length < 3 || !this.data.stamp) return;
    try {
      const answer = await this.api.post("/api/map/select", { polygon });
      if (this.plane.polygon !== polygon) return; // another one since
      this.selection = { id: answer.selection, images: answer.kept };
      const more = answer.kept < answer.images ? ` An even sample of ${answer.kept.toLocaleString("en")} will be sent.` : "";
      this.words.replaceChildren(answer.images ? `${counted(answer.images, "image")} selected.${more}` : "No image inside.");
      this.hints.used("select");
    } catch (error) {
      this.words.replaceChildren(`${capital(error.message)}. Nothing was selected.`);
      if (error instanceof ApiError && error.status === 401) this.renew();
    }
    this.#showSelection();
  }

  #drop() {
    this.crosshair.drop();
    this.plane.polygon = [];
    this.plane.closed = false;
    this.selection = { id: "", images: 0 };
    this.words.replaceChildren("");
    this.plane.moved();
    this.#showSelection();
  }

  #showSelection() {
    const { id, images: count } = this.selection;
    this.send.disabled = !id;
    this.send.replaceChildren(el("span", {}, id ? `Send ${counted(count, "image")} to the grid` : "Send to the grid"), kbd("g"));
    this.clear.disabled = !this.plane.polygon.length;
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
    if (this.card.dialog.open || typing(event)) return false;
    if (this.crosshair.arrow(key, event.shiftKey) || this.#zoomed(key)) return true;
    const act = {
      Enter: () => this.crosshair.enter(),
      Escape: () => this.#drop(),
      " ": () => this.gestures.hold(),
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
    if (this.card.dialog.open) fix(this.card.opened);
    else if (index >= 0) fix(this.data.points.ids[index]);
    return true;
  }

  /** @param {string} key */
  #released(key) {
    if (key === " " && this.gestures.letGo() && this.crosshair.index >= 0 && !this.card.dialog.open) {
      this.card.open(this.data.points.ids[this.crosshair.index]);
    }
  }

  /** A key zooms, around the crosshair where there is one. @param {string} key */
  #zoomed(key) {
    const { plane, crosshair } = this;
    const [left, top] = plane.crosshair ? plane.toScreen(...plane.crosshair) : [plane.width / 2, plane.height / 2];
    if (!plane.view.key(key, { x: left - plane.width / 2, y: top - plane.height / 2 })) return false;
    if (key !== "Home" && crosshair.index >= 0) this.#ring(crosshair.index);
    return true;
  }
}
