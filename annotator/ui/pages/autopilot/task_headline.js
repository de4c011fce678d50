// @ts-check
/** What there is to do and why, and what has come of this sitting. */

import { el, formatCount, setText } from "../shared/dom.js";
import { RuleOutOffer } from "./rule_out_offer.js";
import { describeLine, describeTask } from "./autopilot_texts.js";

const MAX_TIMED_MILLISECONDS = 60_000; // milliseconds of one decision that count: whoever takes longer is having a coffee

export class TaskHeadline {
  /**
   * @param {import("../shared/label_mode.js").LabelMode} mode whether a single label completes a task
   * @param {(offer: import("./rule_out_offer.js").Offer) => void} onRule told of a class that is treated as absent from now on
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
    this.ruleOutOffer = new RuleOutOffer(onRule);
    this.element = el("div", { class: "what" }, this.line, this.why, this.ruleOutOffer.element, this.task);
  }

  /** @param {import("./autopilot.js").Action} action */
  show(action) {
    const { reason, others } = action;
    this.again(action);
    this.why.open = false;
    this.why.hidden = !reason && !others.length;
    setText(this.reason, reason);
    this.alternatives.hidden = !others.length;
    this.others.replaceChildren(...others.map((line) => el("li", {}, line)));
    this.ruleOutOffer.show(action.ruling_out);
  }

  /** A grid begins the other way, or a label does not complete the task any more. @param {import("./autopilot.js").Action} action */
  again(action) {
    setText(this.line, describeLine(action, this.mode.way));
    setText(this.task, describeTask(action, this.mode.way));
  }

  /** @param {string} words while there is no action */
  showNone(words) {
    setText(this.line, words);
    setText(this.task, "");
    this.why.hidden = true;
    this.ruleOutOffer.show(null);
  }

  /** An answer was given, or taken back. @param {number} positives labels in it that say present @param {number} milliseconds @param {1 | -1} way */
  count(positives, milliseconds, way) {
    this.positives += way * positives;
    this.milliseconds += way * Math.min(milliseconds, MAX_TIMED_MILLISECONDS);
    const minutes = Math.round(this.milliseconds / 60_000);
    const time = minutes < 1 ? "under a minute" : formatCount(minutes, "minute");
    setText(this.tally, this.milliseconds ? `${formatCount(this.positives, "label")} found in ${time}` : "");
  }
}
