// @ts-check
/** What there is to do and why, and what has come of this sitting. */

import { el, formatCount, setText } from "../shared/dom.js";
import { RuleOutOffer } from "./rule_out_offer.js";
import { describeLine, describeTask } from "./autopilot_texts.js";

const MAX_TIMED_MILLISECONDS = 60_000; // milliseconds of one decision that count: whoever takes longer is having a coffee

/** @typedef {{answers: number, positives: number, milliseconds: number}} Tally positives: labels in them that say present */

export class TaskHeadline {
  /**
   * @param {import("../shared/label_mode.js").LabelMode} mode whether a single label completes a task
   * @param {(offer: import("./rule_out_offer.js").Offer) => void} onRule told of a class that is treated as absent from now on
   */
  constructor(mode, onRule) {
    this.mode = mode;
    /** Of this sitting, and since the person went on although the target is reached. @type {Tally} */
    this.sitting = { answers: 0, positives: 0, milliseconds: 0 };
    /** @type {Tally | null} */
    this.beyond = null;
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

  /** The person goes on although the target is reached. */
  beginBeyond() {
    this.beyond ??= { answers: 0, positives: 0, milliseconds: 0 };
  }

  /** The tallies that an answer counts in that is given now. */
  get tallies() {
    return [this.sitting, ...(this.beyond ? [this.beyond] : [])];
  }

  /** An answer was given, or taken back. @param {Tally[]} tallies it counts in @param {Tally} answer @param {1 | -1} way */
  count(tallies, { answers, positives, milliseconds }, way) {
    for (const tally of tallies) {
      tally.answers += way * answers;
      tally.positives += way * positives;
      tally.milliseconds += way * Math.min(milliseconds, MAX_TIMED_MILLISECONDS);
    }
    const { sitting, beyond } = this;
    const found = sitting.milliseconds ? `${formatCount(sitting.positives, "label")} found in ${formatTime(sitting.milliseconds)}` : "";
    const more = beyond?.milliseconds ? `Beyond the target: ${formatCount(beyond.answers, "answer")}, ${formatCount(beyond.positives, "label")} found in ${formatTime(beyond.milliseconds)}` : "";
    setText(this.tally, [found, more].filter(Boolean).join(". "));
  }
}

/** @param {number} milliseconds */
function formatTime(milliseconds) {
  const minutes = Math.round(milliseconds / 60_000);
  return minutes < 1 ? "under a minute" : formatCount(minutes, "minute");
}
