// @ts-check
/** What a point is: its image in small with its labels beside the pointer, and large when asked for. */

import { HIDDEN_WORDS, STATE_WORDS, el, kbd } from "../shared/dom.js";
import { buildFixButton, openInAnnotate } from "../shared/fix_link.js";

const CACHE_MILLISECONDS = 20_000; // milliseconds for which labels that were read are shown again
const MAX_CACHED_ITEMS = 500;
const CARD_GAP_PIXELS = 14;
const MOST_CHIPS = 6; // on the small card

export class MapCard {
  /** @param {import("../shared/api.js").Api} api @param {(id: number) => string} className */
  constructor(api, className) {
    this.api = api;
    this.className = className;
    /** @type {Map<number, {at: number, item: Promise<any>}>} */
    this.cache = new Map();
    this.shown = 0;
    /** The image that was shown in large last. */
    this.opened = 0;
    this.element = el("div", { class: "card", hidden: true });
    this.dialog = el("dialog", { class: "large", "aria-label": "Image" });
  }

  /** Beside a place on the map. @param {number} id @param {number} left @param {number} top */
  show(id, left, top) {
    const { clientWidth: width, clientHeight: height } = this.element.parentElement;
    if (id !== this.shown) {
      this.shown = id;
      const words = el("div", { class: "words" });
      this.element.replaceChildren(el("img", { src: this.api.url(`/api/thumb/${id}`), alt: "", draggable: "false" }), words);
      this.#item(id).then((item) => {
        if (this.shown === id && item) words.replaceChildren(el("p", { dir: "auto" }, item.name), this.#chips(item, MOST_CHIPS));
      });
    }
    this.element.hidden = false;
    const right = left < width / 2;
    this.element.style.left = right ? `${left + CARD_GAP_PIXELS}px` : "auto";
    this.element.style.right = right ? "auto" : `${width - left + CARD_GAP_PIXELS}px`;
    const below = top < height / 2;
    this.element.style.top = below ? `${top + CARD_GAP_PIXELS}px` : "auto";
    this.element.style.bottom = below ? "auto" : `${height - top + CARD_GAP_PIXELS}px`;
  }

  hide() {
    this.shown = 0;
    this.element.hidden = true;
  }

  /** @param {number} id */
  open(id) {
    this.hide();
    this.opened = id;
    const head = el("h2", { dir: "auto" }, "");
    const labels = el("div", { class: "chips" });
    this.dialog.replaceChildren(
      head,
      el("img", { src: this.api.url(`/api/image/${id}`), alt: "" }),
      labels,
      el("form", { method: "dialog", class: "tools" }, buildFixButton(() => openInAnnotate(id)), el("button", { class: "main" }, "Close", kbd("Esc"))),
    );
    this.dialog.showModal();
    this.#item(id).then((item) => {
      if (!item) return;
      head.replaceChildren(item.name);
      this.dialog.querySelector("img").alt = item.name;
      labels.replaceWith(this.#chips(item, Infinity));
    });
  }

  /** What is on an image in words, for a screen reader. @param {number} id @returns {Promise<string>} */
  async describeImage(id) {
    const item = await this.#item(id);
    if (!item) return "";
    const labels = item.labels.map((label) => `${this.className(label.class)} ${STATE_WORDS[label.state]}`);
    return `${item.name}: ${labels.join(", ") || (item.hidden ? HIDDEN_WORDS : "no labels yet")}`;
  }

  /** @param {any} item @param {number} most */
  #chips(item, most) {
    const positive = item.labels.filter((label) => label.state >= 0);
    const negative = item.labels.length - positive.length;
    const chips = positive.slice(0, most).map((label) =>
      el("span", { class: "chip", "data-state": STATE_WORDS[label.state] }, el("bdi", {}, this.className(label.class)), label.state ? "" : " ?"));
    const more = positive.length - chips.length;
    const rest = [more ? `${more} more` : "", negative ? `${negative} absent` : ""].filter(Boolean).join(", ");
    const note = rest || (item.labels.length ? "" : item.hidden ? HIDDEN_WORDS : "No labels yet");
    return el("div", { class: "chips" }, ...chips, ...(note ? [el("span", { class: "quiet" }, note)] : []));
  }

  /** @param {number} id @returns {Promise<any>} null when it could not be read */
  #item(id) {
    const entry = this.cache.get(id);
    if (entry && performance.now() - entry.at < CACHE_MILLISECONDS) return entry.item;
    const item = this.api.post("/api/items", { images: [id] }).then(
      (answer) => answer.items[0],
      () => {
        this.cache.delete(id); // asked again next time
        return null;
      },
    );
    this.cache.delete(id);
    this.cache.set(id, { at: performance.now(), item });
    if (this.cache.size > MAX_CACHED_ITEMS) this.cache.delete(this.cache.keys().next().value);
    return item;
  }
}
