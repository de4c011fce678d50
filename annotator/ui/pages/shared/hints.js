// @ts-check
/**
 * Hints for a first visit: three a page at most, one after the other, each beside what it is about. A hint goes when it is
 * dismissed or when what it says is done, and does not come back for this person in this browser. It lies over the page
 * and moves nothing. On a phone, where there is no room beside anything, it lies over the upper edge of the picture, in its
 * own words; a page without a picture has none there.
 */

import { afterPaint, el } from "./dom.js";
import { readSetting, writeSetting } from "./storage.js";

const HINTED_DECISIONS = 12; // decisions after which nobody needs them
const HINT_GAP_PIXELS = 8;

const NAVIGATION_PIXELS = 52; // pixels under the navigation
const PHONE_QUERY = window.matchMedia("(max-width: 600px)");
const STAGE_SELECTOR = ".stage";

/**
 * @typedef {{text: string, touch?: string, at: string, side?: string, by: string}} Hint
 *   touch: the same for a phone, which has no keys; without it there is none
 *   at: selector of what it stands beside; side: left, above, below (where there is room), over its foot, or over its end
 *   where it is wide;
 *   by: the use that dismisses it, as pages tell it to noteUse()
 */

export class HintBubbles {
  /** @param {string} page @param {string} annotator @param {Hint[]} hints */
  constructor(page, annotator, hints) {
    this.store = `annotator:hints:${annotator}:${page}`;
    this.decisions = 0;
    const kept = readSetting(this.store);
    /** @type {Set<string>} */
    const done = new Set(Array.isArray(kept) ? kept : []);
    this.open = hints.filter(({ at }) => !done.has(at)).map((hint) => ({ hint, element: this.#build(hint) }));
    this.done = done;
    this.element = el("aside", { class: "hints", "aria-label": "First steps" }, ...this.open.map(({ element }) => element));
    this.later = afterPaint(() => this.#place());
    this.observer = new ResizeObserver(() => this.#place());
    this.observer.observe(this.element);
  }

  /** What is on screen has changed: the hints follow what they are about, after the frame. */
  followSoon() {
    if (this.open.length) this.later();
  }

  /** Something was done: its hint is no longer needed. @param {string} what */
  noteUse(what) {
    if (!this.open.length) return;
    if (what === "decide") this.decisions += 1;
    this.#dismiss(({ hint }) => hint.by === what || this.decisions >= HINTED_DECISIONS);
  }

  close() {
    this.observer.disconnect();
  }

  /** @param {(open: {hint: Hint, element: HTMLElement}) => boolean} which */
  #dismiss(which) {
    const gone = this.open.filter(which);
    if (!gone.length) return;
    this.open = this.open.filter((one) => !gone.includes(one));
    for (const { hint, element } of gone) {
      this.done.add(hint.at);
      element.remove();
    }
    if (this.open.length) this.later();
    else this.observer.disconnect();
    writeSetting(this.store, [...this.done]);
  }

  /** @param {Hint} hint */
  #build(hint) {
    const element = el("div", { class: "hint", role: "note" }, el("span", {}, hint.text),
      el("button", { type: "button", "aria-label": "Dismiss hint", title: "Dismiss", onclick: () => this.#dismiss((one) => one.hint.text === hint.text) }, "×"));
    element.style.visibility = "hidden";
    return element;
  }

  /** Show the first one whose place is on screen. */
  #place() {
    const frame = this.element.getBoundingClientRect();
    let found = false;
    for (const { hint, element } of this.open) {
      const text = PHONE_QUERY.matches ? hint.touch : hint.text;
      const target = found || !text ? null : this.element.parentElement?.querySelector(PHONE_QUERY.matches ? STAGE_SELECTOR : hint.at);
      const box = target?.checkVisibility() ? target.getBoundingClientRect() : null;
      found ||= Boolean(box?.width);
      element.style.visibility = box?.width ? "visible" : "hidden";
      if (!text || !box?.width) continue;
      const words = /** @type {HTMLElement} */ (element.firstElementChild);
      if (words.textContent !== text) words.textContent = text;
      const [left, top] = PHONE_QUERY.matches ? [box.left + HINT_GAP_PIXELS, box.top + HINT_GAP_PIXELS] : placeHint(box, element.offsetWidth, element.offsetHeight, hint.side);
      element.style.left = `${Math.max(frame.left, Math.min(left, frame.right - element.offsetWidth)) - frame.left}px`;
      element.style.top = `${top - frame.top}px`;
    }
  }
}

/** Left and top of a hint. @param {DOMRect} box of what it is about @param {number} width @param {number} height @param {string} [side] */
function placeHint(box, width, height, side) {
  const foot = Math.min(box.bottom, window.innerHeight);
  if (side === "over") return [box.left + (box.width - width) / 2, Math.max(NAVIGATION_PIXELS, foot - height - 9 * HINT_GAP_PIXELS)];
  if (side === "end" && box.width > 2.5 * width) return [box.right - width, box.top];
  if (side === "left" && box.left - width - HINT_GAP_PIXELS > 0) return [box.left - width - HINT_GAP_PIXELS, Math.max(NAVIGATION_PIXELS, box.top)];
  const [above, below] = [box.top - height - HINT_GAP_PIXELS, box.bottom + HINT_GAP_PIXELS];
  const fits = side === "below" ? below + height > window.innerHeight : above >= NAVIGATION_PIXELS;
  return [box.left, fits ? above : below];
}
