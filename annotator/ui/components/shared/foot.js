// @ts-check
/**
 * The status line: decisions saved, unsent and failed, progress, and what the worker does.
 *
 * During quick work it is redrawn only in the frame of the next picture: a frame of its own just before a key would delay
 * the next picture by a sixtieth of a second.
 */

import { capital, el } from "./dom.js";

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
    write(this.saved, `${outbox.saved.toLocaleString("en")} saved · ${waiting.toLocaleString("en")} unsent · ${aside.size} failed`);
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
    write(this.far, inWords(progress));
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

/**
 * How far the project is, as the server gave it and as the page counts on (snapshot/progress.py has the words).
 * @typedef {{pairs_answered: number, pairs: number, images_complete: number, images: number, template: string}} Progress
 */

/** Full only when every pair is answered. @param {Progress} progress */
function shareOf({ pairs_answered: answered, pairs }) {
  return pairs ? Math.max(0, Math.min(answered, pairs) / pairs) : 0;
}

/** @param {Progress} progress */
function inWords({ pairs_answered: answered, pairs, images_complete: complete, images, template }) {
  const within = (/** @type {number} */ count, /** @type {number} */ of) => Math.max(0, Math.min(count, of)).toLocaleString("en");
  return template.replace("{pairs_answered}", within(answered, pairs)).replace("{images_complete}", within(complete, images));
}

/** @param {HTMLElement} node @param {string} text */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
