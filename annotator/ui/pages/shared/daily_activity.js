// @ts-check
/**
 * What a person has done today, as it grows with their decisions: the server's count, and what the decisions that wait to
 * be sent add to it. The line at the top of all pages (status_bar/status_bar.js) shows it; it hears of it by an event of the window.
 */

export const TODAY_EVENT = "annotator:today";
const MAX_TIMED_MILLISECONDS = 600_000; // milliseconds; after a longer time the person was away, as the server counts
const MAX_COUNTED_DECISIONS = 1000; // decisions whose undo can be counted at once
const ANSWER_ACTIONS = ["label", "clear", "done", "batch"];

/**
 * @typedef {{milliseconds: number, images: number, labels: number, newest: number, midnight: number}} Count
 *   newest: the newest decision when it was counted; midnight: when its day began
 * @typedef {{milliseconds: number, labels: number, images: number[]}} Part  images: those that count because of it
 */

export class DailyActivity {
  constructor() {
    /** @type {Count | null} */
    this.counted = null;
    /** What each decision adds; of an undo, what it takes away. @type {Map<string, {part: Part, sign: 1 | -1}>} */
    this.parts = new Map();
    /** @type {Set<string>} */
    this.waiting = new Set();
    /** Images that are counted, as far as this page knows: the server corrects it. @type {Set<number>} */
    this.images = new Set();
    this.closed = false;
  }

  /** A decision of this person waits to be sent. @param {string} uuid @param {any} entry */
  add(uuid, entry) {
    const undone = entry.action === "undo" ? this.parts.get(String(entry.undoes).replace(/:0$/, "")) : null;
    if (entry.action === "undo" && !undone) return;
    const part = undone?.part ?? this.#measurePart(entry);
    for (const image of part.images) undone ? this.images.delete(image) : this.images.add(image);
    this.parts.set(uuid, { part, sign: undone ? -1 : 1 });
    this.waiting.add(uuid);
    if (this.parts.size > MAX_COUNTED_DECISIONS) this.parts.delete(this.parts.keys().next().value ?? "");
  }

  /** The server has judged these decisions. @param {string[]} uuids @param {Count | undefined} count  its count since */
  take(uuids, count) {
    for (const uuid of uuids) this.waiting.delete(uuid);
    if (count) this.counted = count;
    if (this.closed) this.announce();
  }

  /** The page is left: what waits is sent from the next one; answers to what was sent still arrive. */
  close() {
    this.closed = true;
    this.waiting.clear();
    this.announce();
  }

  /** What the decisions that wait add to the server's count. */
  get ahead() {
    const sum = { milliseconds: 0, images: 0, labels: 0 };
    for (const uuid of this.waiting) {
      const { part, sign } = this.parts.get(uuid) ?? { part: { milliseconds: 0, labels: 0, images: [] }, sign: 1 };
      sum.milliseconds += sign * part.milliseconds;
      sum.labels += sign * part.labels;
      sum.images += sign * part.images.length;
    }
    return sum;
  }

  /** Tell the line at the top. */
  announce() {
    window.dispatchEvent(new CustomEvent(TODAY_EVENT, { detail: { counted: this.counted, ahead: this.ahead, waiting: this.waiting.size } }));
  }

  /** @param {any} entry @returns {Part} */
  #measurePart({ action, image, state, cells, milliseconds }) {
    const answered = ANSWER_ACTIONS.includes(action) ? (cells ? cells.map(([id]) => id) : [image]) : [];
    return {
      milliseconds: milliseconds > 0 && milliseconds <= MAX_TIMED_MILLISECONDS ? milliseconds : 0,
      labels: cells ? cells.filter(([, , given]) => given === 1).length : Number(action === "label" && state === 1),
      images: [...new Set(answered)].filter((id) => !this.images.has(id)),
    };
  }
}
