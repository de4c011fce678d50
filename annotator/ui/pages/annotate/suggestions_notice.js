// @ts-check
/**
 * The news that there are suggestions by now, with the way to Autopilot: once for each project and browser, to people who
 * were there before. It is shown in the status line.
 */

import { el } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

export class SuggestionsNotice {
  /** @param {import("../shared/session.js").Session} session */
  constructor({ data, statusLine }) {
    this.store = `annotator:suggestions:${data.project}`;
    const [, href] = data.pages.autopilot ?? ["", ""];
    this.note = el("span", {}, "Suggestions are ready: Autopilot now asks only what pays. ", el("a", { href }, "Go to Autopilot"), " ",
      el("button", { type: "button", "aria-label": "Dismiss", title: "Dismiss", onclick: () => this.note.remove() }, "×"));
    this.element = el("span", { class: "ready", role: "status" });
    statusLine.element.append(this.element);
  }

  /** The server has answered. @param {{progress: any, run: number | null}} news run: null before the first one */
  onNews({ progress, run }) {
    const before = readSetting(this.store);
    if (!progress || before === "told") return;
    if (run != null && before === "waiting") this.element.append(this.note);
    const now = run == null ? "waiting" : "told";
    if (now !== before) writeSetting(this.store, now);
  }
}
