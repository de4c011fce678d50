// @ts-check
/** A part of an image, drawn with the pointer from one corner to the other. */

import { el } from "../shared/dom.js";

const MIN_REGION_SHARE = 0.01; // of a side, as in store/networks/search_examples.py

export class RegionField {
  /** @param {(box: [number, number, number, number]) => void} onFind told left, top, right, bottom as shares of the sides */
  constructor(onFind) {
    this.frame = el("div", { class: "drawn-on" });
    this.rectangle = el("div", { class: "rectangle", hidden: true });
    this.about = el("p", { class: "quiet" });
    this.button = el("button", { type: "button", disabled: true, onclick: () => this.box && onFind(this.box) }, "Find this part");
    this.element = el("div", { class: "part", hidden: true }, el("h3", {}, "Like a part of the selected image"), el("div", { class: "tools" }, this.button, this.about), this.frame);
    /** @type {[number, number] | null} */
    this.from = null;
    /** @type {[number, number, number, number] | null} */
    this.box = null;
    this.frame.addEventListener("pointerdown", (event) => this.#press(event));
    this.frame.addEventListener("pointermove", (event) => this.from && this.#draw(this.#at(event)));
    for (const end of ["pointerup", "pointercancel"]) this.frame.addEventListener(end, () => (this.from = null));
  }

  clear() {
    this.element.hidden = true;
    this.frame.replaceChildren();
    this.#take(null);
  }

  /** @param {HTMLImageElement} picture @param {string} name */
  show(picture, name) {
    picture.alt = name;
    this.about.textContent = `Draw a rectangle on ${name}.`;
    this.frame.style.width = `min(100%, calc(40dvh * ${picture.naturalWidth / picture.naturalHeight}))`; // all of it is in sight
    this.frame.replaceChildren(picture, this.rectangle);
    this.element.hidden = false;
  }

  /** @param {PointerEvent} event @returns {[number, number]} */
  #at(event) {
    const { left, top, width, height } = this.frame.getBoundingClientRect();
    const share = (/** @type {number} */ value) => Math.min(1, Math.max(0, value));
    return [share((event.clientX - left) / width), share((event.clientY - top) / height)];
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.frame.setPointerCapture(event.pointerId);
    this.from = this.#at(event);
    this.#take(null);
  }

  /** @param {[number, number]} to */
  #draw([x, y]) {
    if (!this.from) return;
    const [fromX, fromY] = this.from;
    this.#take([Math.min(x, fromX), Math.min(y, fromY), Math.max(x, fromX), Math.max(y, fromY)]);
  }

  /** @param {[number, number, number, number] | null} box */
  #take(box) {
    const has = box !== null && box[2] - box[0] >= MIN_REGION_SHARE && box[3] - box[1] >= MIN_REGION_SHARE;
    this.box = has ? box : null;
    this.button.disabled = !has;
    this.rectangle.hidden = !box;
    if (!box) return;
    const percent = (/** @type {number} */ share) => `${100 * share}%`;
    Object.assign(this.rectangle.style, { left: percent(box[0]), top: percent(box[1]), width: percent(box[2] - box[0]), height: percent(box[3] - box[1]) });
  }
}
