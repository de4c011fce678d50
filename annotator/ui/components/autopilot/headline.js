// @ts-check
/** What there is to do and why, and what has come of this sitting. */

import { counted, el } from "../shared/dom.js";
import { RulingOut } from "./rulingout.js";
import { taskOf } from "./words.js";
import { write } from "../grid/deciding.js";

const LONGEST = 60_000; // milliseconds of one decision that count: whoever takes longer is having a coffee

export class Headline {
  /**
   * @param {import("../shared/labelmode.js").LabelMode} mode whether a single label completes a task
   * @param {(offer: import("./rulingout.js").Offer) => void} onRule told of a class that is treated as absent from now on
   */
  constructor(mode, onRule) {
    this.mode = mode;
    this.positives = 0;
    this.milliseconds = 0;
    this.line = el("h2", { class: "line", "aria-live": "polite" });
    this.task = el("p", { class: "task", "aria-live": "polite" });
    this.reason = el("p", {});
    this.others = el("ul");
    this.alternatives = el("p", {}, "Alternatives:");
    this.why = el("details", { class: "why", hidden: true }, el("summary", {}, "Why this?"),
      el("div", { class: "reasons" }, this.reason, this.alternatives, this.others,
        el("p", {}, "Autopilot learns your times. ", el("a", { href: "speed_test" }, "How fast are you? A two-minute test"))));
    this.tally = el("p", { class: "tally" });
    this.ruling = new RulingOut(onRule);
    this.element = el("div", { class: "what" }, this.line, this.why, this.ruling.element, this.task);
  }

  /** @param {import("./autopilot.js").Action} action */
  show(action) {
    const { line, reason, others } = action;
    write(this.line, line);
    write(this.task, taskOf(action, this.mode.way));
    this.why.open = false;
    this.why.hidden = !reason && !others.length;
    write(this.reason, reason);
    this.alternatives.hidden = !others.length;
    this.others.replaceChildren(...others.map((line) => el("li", {}, line)));
    this.ruling.show(action.ruling_out);
  }

  /** A grid begins the other way, or a label does not complete the task any more. @param {import("./autopilot.js").Action} action */
  again(action) {
    write(this.task, taskOf(action, this.mode.way));
  }

  /** @param {string} words while there is no action */
  showNone(words) {
    write(this.line, words);
    write(this.task, "");
    this.why.hidden = true;
    this.ruling.show(null);
  }

  /** An answer was given, or taken back. @param {number} positives labels in it that say present @param {number} milliseconds @param {1 | -1} way */
  count(positives, milliseconds, way) {
    this.positives += way * positives;
    this.milliseconds += way * Math.min(milliseconds, LONGEST);
    const minutes = Math.round(this.milliseconds / 60_000);
    const time = minutes < 1 ? "under a minute" : counted(minutes, "minute");
    write(this.tally, this.milliseconds ? `${counted(this.positives, "label")} found in ${time}` : "");
  }
}
