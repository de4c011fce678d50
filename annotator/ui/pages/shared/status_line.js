// @ts-check
/**
 * The status line: whether everything is saved, progress, and what the worker does.
 *
 * During quick work it is redrawn only right after the frame of the next picture, which must not wait for it: at another
 * time, a frame of its own just before a key would delay the next picture by a sixtieth of a second.
 */

import { capitalize, el, setText } from "./dom.js";
import { announceProgress, computeShare, formatProgress } from "./progress.js";

const QUIET_MILLISECONDS = 700; // milliseconds without a new picture after which it is redrawn by itself

export class StatusLine {
  constructor() {
    this.saved = el("span", { class: "saved" });
    this.trouble = el("span", { class: "trouble", role: "alert" });
    /** Opens the list of refused decisions; the session adds the listener. */
    this.refusedButton = el("button", { type: "button", hidden: true }, "Show");
    this.bar = el("progress", { max: "1", value: "0", "aria-label": "Pairs answered" });
    this.far = el("span", { class: "far" });
    this.worker = el("span", { class: "worker" });
    this.element = el("div", { class: "foot" }, this.saved, this.trouble, this.refusedButton, this.bar, this.far, this.worker);
    this.timer = 0;
  }

  /** @param {import("./outbox.js").Outbox} outbox @param {import("./item_queue.js").ItemQueue | undefined} items */
  drawSoon(outbox, items) {
    this.#count(outbox);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.draw(outbox, items), QUIET_MILLISECONDS);
  }

  /** @param {import("./outbox.js").Outbox} outbox @param {import("./item_queue.js").ItemQueue | undefined} items */
  draw(outbox, items) {
    clearTimeout(this.timer);
    this.#count(outbox);
    outbox.dailyActivity.announce();
    const waiting = outbox.waiting.size;
    const { refused } = outbox;
    setText(this.saved, waiting ? `${waiting.toLocaleString("en")} unsent` : refused.size ? "" : "All saved");
    const trouble = outbox.trouble || items?.trouble || "";
    const { newest } = refused;
    if (this.refusedButton.hidden !== !newest) this.refusedButton.hidden = !newest;
    const words = [
      trouble && `${capitalize(trouble)}. Nothing is lost; trying again.`,
      newest && `${refused.size} not saved: ${newest.reason}.`,
    ];
    setText(this.trouble, words.filter(Boolean).join(" "));
    if (!items || !items.news.progress) return;
    const { progress, worker } = items.news;
    this.bar.setAttribute("value", String(computeShare(progress)));
    const far = formatProgress(progress);
    setText(this.far, far);
    announceProgress(far);
    setText(this.worker, worker);
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
