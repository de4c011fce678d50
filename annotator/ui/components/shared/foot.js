// @ts-check
/**
 * The status line: decisions saved, unsent and failed, progress, and what the worker does.
 *
 * During quick work it is redrawn only in the frame of the next picture: a frame of its own just before a key would delay
 * the next picture by a sixtieth of a second.
 */

import { capital, counted, el } from "./dom.js";

const QUIET = 700; // milliseconds without a new picture after which it is redrawn by itself

export class Foot {
  constructor() {
    this.saved = el("span", { class: "saved" });
    this.trouble = el("span", { class: "trouble", role: "alert" });
    /** Opens the list of refused decisions; the session adds the listener. */
    this.aside = el("button", { type: "button", hidden: true }, "Show");
    this.bar = el("progress", { max: "1", value: "0", "aria-label": "Images with a label" });
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
    if (!hand || hand.news.of == null) return;
    const { left, of, incomplete, worker } = hand.news;
    const labeled = Math.min(of, of - left);
    this.bar.setAttribute("value", of ? String(labeled / of) : "0");
    const open = incomplete > 0 ? `, ${incomplete.toLocaleString("en")} incomplete` : "";
    write(this.far, `${labeled.toLocaleString("en")} of ${counted(of, "image")} labeled${open}`);
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
