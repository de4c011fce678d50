// @ts-check
/**
 * Hints for a first visit: three a page at most, one after the other, in a row above the page. A hint goes when it is
 * dismissed or when what it says is done, and does not come back for this person in this browser. The row never lies over
 * an image, and keeps its room until the page is left: nothing moves under a hand when the last hint goes.
 */

import { afterPaint, el, setText } from "./dom.js";
import { readSetting, writeSetting } from "./storage.js";

const HINTED_DECISIONS = 12; // decisions after which nobody needs them
const PHONE_QUERY = window.matchMedia("(max-width: 600px)");

/**
 * @typedef {{text: string, touch?: string, at: string, by: string}} Hint
 *   touch: the same for a phone, which has no keys; without it there is none
 *   at: selector of what it is about: it is shown while that is on screen; by: the use that dismisses it, as pages tell it
 *   to noteUse()
 */

export class HintRow {
  /** @param {string} page @param {string} annotator @param {Hint[]} hints */
  constructor(page, annotator, hints) {
    this.store = `annotator:hints:${annotator}:${page}`;
    this.decisions = 0;
    const kept = readSetting(this.store);
    /** @type {Set<string>} */
    this.done = new Set(Array.isArray(kept) ? kept : []);
    this.open = hints.filter(({ at, touch }) => !this.done.has(at) && (touch || !PHONE_QUERY.matches));
    this.words = el("span", {});
    this.hint = el("div", { class: "hint", role: "note", hidden: true }, this.words,
      el("button", { type: "button", "aria-label": "Dismiss hint", title: "Dismiss", onclick: () => this.#dismiss((hint) => hint === this.shown) }, "×"));
    this.element = el("aside", { class: "hints", "aria-label": "First steps", hidden: !this.open.length }, this.hint);
    /** @type {Hint | undefined} */
    this.shown = undefined;
    this.later = afterPaint(() => this.#show());
    this.later();
  }

  /** What is on screen has changed: the row follows it, after the frame. */
  followSoon() {
    if (this.open.length) this.later();
  }

  /** Something was done: its hint is no longer needed. @param {string} what */
  noteUse(what) {
    if (!this.open.length) return;
    if (what === "decide") this.decisions += 1;
    this.#dismiss((hint) => hint.by === what || this.decisions >= HINTED_DECISIONS);
  }

  /** @param {(hint: Hint) => boolean} which */
  #dismiss(which) {
    const gone = this.open.filter(which);
    if (!gone.length) return;
    this.open = this.open.filter((hint) => !gone.includes(hint));
    for (const { at } of gone) this.done.add(at);
    writeSetting(this.store, [...this.done]);
    this.later();
  }

  /** Show the first one that is about something on screen. */
  #show() {
    this.shown = this.open.find(({ at }) => this.element.parentElement?.querySelector(at)?.checkVisibility());
    this.hint.hidden = !this.shown;
    if (this.shown) setText(this.words, (PHONE_QUERY.matches && this.shown.touch) || this.shown.text);
  }
}
