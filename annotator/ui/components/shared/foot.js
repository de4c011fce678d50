// @ts-check
/**
 * The status line: whether everything is saved, progress, and what the worker does.
 *
 * During quick work it is redrawn only right after the frame of the next picture, which must not wait for it: at another
 * time, a frame of its own just before a key would delay the next picture by a sixtieth of a second.
 */

import { capital, el } from "./dom.js";
import { progressInWords, shareOf, tellProgress } from "./progress.js";

const QUIET = 700; // milliseconds without a new picture after which it is redrawn by itself

export class Foot {
  constructor() {
    this.saved = el("span", { class: "saved" });
    this.trouble = el("span", { class: "trouble", role: "alert" });
    /** Opens the list of refused decisions; the session adds the listener. */
    this.aside = el("button", { type: "button", hidden: true }, "Show");
    this.bar = el("progress", { max: "1", value: "0", "aria-label": "Pairs answered" });
    this.far = el("span", { class: "far" });
    this.worker = el("span", { class: "worker" });
    this.element = el("div", { class: "foot" }, this.saved, this.trouble, this.aside, this.bar, this.far, this.worker);
    this.timer = 0;
  }

  /** @param {import("./outbox.js").Outbox} outbox @param {import("./hand.js").Hand | undefined} hand */
  due(outbox, hand) {
    this.#count(outbox);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.draw(outbox, hand), QUIET);
  }

  /** @param {import("./outbox.js").Outbox} outbox @param {import("./hand.js").Hand | undefined} hand */
  draw(outbox, hand) {
    clearTimeout(this.timer);
    this.#count(outbox);
    outbox.today.tell();
    const waiting = outbox.waiting.size;
    const { aside } = outbox;
    write(this.saved, waiting ? `${waiting.toLocaleString("en")} unsent` : aside.size ? "" : "All saved");
    const trouble = outbox.trouble || hand?.trouble || "";
    const refused = aside.newest;
    if (this.aside.hidden !== !refused) this.aside.hidden = !refused;
    const words = [
      trouble && `${capital(trouble)}. Nothing is lost; trying again.`,
      refused && `${aside.size} not saved: ${refused.reason}.`,
    ];
    write(this.trouble, words.filter(Boolean).join(" "));
    if (!hand || !hand.news.progress) return;
    const { progress, worker } = hand.news;
    this.bar.setAttribute("value", String(shareOf(progress)));
    const far = progressInWords(progress);
    write(this.far, far);
    tellProgress(far);
    write(this.worker, worker);
  }

  close() {
    clearTimeout(this.timer);
  }

  /** The numbers in data- attributes are current at once; tests and benchmarks read them. @param {import("./outbox.js").Outbox} outbox */
  #count(outbox) {
    this.element.dataset.waiting = String(outbox.waiting.size);
    this.element.dataset.saved = String(outbox.saved);
  }
}

/** @param {HTMLElement} node @param {string} text */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
