// @ts-check
/**
 * Decisions that the server has not acknowledged yet.
 *
 * Each lies in localStorage under its own uuid from the moment of the key press until the server says it is saved, so
 * a reload, a closed tab or a killed server loses nothing; the server knows each uuid, so sending twice doubles
 * nothing. Tabs share the storage: whoever is open sends what is there, in the order in which it was given.
 */

import { afterPaint } from "./dom.js";

const BATCH = 100;
const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 15000;
const PATIENCE = 5000; // sent this long ago by another tab and still here: that tab is gone, or has trouble

export class Outbox {
  /**
   * @param {{api: import("./api.js").Api, project: string, annotator: string, onChange: () => void,
   *          onExpired: () => void}} options
   */
  constructor({ api, project, annotator, onChange, onExpired }) {
    this.api = api;
    this.prefix = `annotator:${project}:unsaved:`;
    this.annotator = annotator;
    this.onChange = onChange;
    this.onExpired = onExpired;
    this.saved = 0;
    /** @type {{decision: object, reason: string}[]} */
    this.refused = [];
    this.trouble = "";
    /** @type {Map<string, any>} */
    this.waiting = new Map(this.#stored().map((entry) => [entry.uuid, entry]));
    /** What localStorage holds of it. @type {Set<string>} */
    this.kept = new Set(this.waiting.keys());
    this.pause = FIRST_PAUSE;
    /** @type {Promise<void> | null} */
    this.sending = null;
    this.closed = false;
    this.timer = 0;
    this.send = afterPaint(() => this.flush());
    this.online = () => this.flush();
    window.addEventListener("online", this.online);
    if (this.waiting.size) this.flush();
  }

  /** @param {object} decision without uuid; returns the uuid it was given */
  add(decision) {
    const uuid = crypto.randomUUID();
    const entry = { ...decision, uuid, annotator: this.annotator, order: nextOrder() };
    this.waiting.set(uuid, entry);
    try {
      localStorage.setItem(this.prefix + uuid, JSON.stringify(entry));
      this.kept.add(uuid);
    } catch {
      this.trouble = "this browser keeps nothing: do not close the page before all is saved";
    }
    this.onChange();
    this.send(); // it is safe in the storage; the picture goes first
    return uuid;
  }

  /** Image ids with a decision the server may not know yet. */
  images() {
    const ids = new Set();
    for (const entry of this.waiting.values()) {
      if (entry.image != null) ids.add(entry.image);
      for (const [image] of entry.cells ?? []) ids.add(image);
    }
    return [...ids];
  }

  /** Cells [image, class] with an answer the server may not know yet. @returns {[number, number][]} */
  cells() {
    return [...this.waiting.values()].flatMap((entry) =>
      entry.cells ? entry.cells.map(([image, one]) => [image, one]) : entry.class == null ? [] : [[entry.image, entry.class]]);
  }

  /** Send what waits, now. Whoever awaits this while it is under way waits for the end of it. @returns {Promise<void>} */
  flush() {
    this.sending ??= this.#send().finally(() => {
      this.sending = null;
    });
    return this.sending;
  }

  async #send() {
    clearTimeout(this.timer);
    try {
      while (this.waiting.size && !this.closed) {
        const batch = [...this.waiting.values()].sort((a, b) => a.order - b.order).slice(0, BATCH);
        const answer = await this.api.post("/api/decisions", { decisions: batch }, { keepalive: true });
        for (const uuid of answer.saved) {
          this.#forget(uuid);
          this.saved += 1;
        }
        for (const [uuid, reason] of Object.entries(answer.refused)) {
          this.refused.push({ decision: this.waiting.get(uuid), reason: String(reason) });
          this.#forget(uuid);
        }
        this.trouble = "";
        this.pause = FIRST_PAUSE;
        this.onChange();
      }
    } catch (error) {
      this.trouble = error.message;
      if (error.status === 401) this.onExpired();
      if (!this.closed) this.timer = window.setTimeout(() => this.flush(), this.pause);
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
      this.onChange();
    }
  }

  /**
   * Take up what other tabs have left behind. What is in hand here is never dropped because the storage lost it: only
   * the server's word counts, and asking it twice costs nothing.
   */
  adopt() {
    const now = Date.now() * 1000;
    for (const entry of this.#stored()) {
      if (!this.waiting.has(entry.uuid) && now - entry.order > PATIENCE * 1000) {
        this.waiting.set(entry.uuid, entry);
        this.kept.add(entry.uuid);
      }
    }
    if (this.waiting.size) this.flush();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    window.removeEventListener("online", this.online);
  }

  /** @param {string} uuid */
  #forget(uuid) {
    this.waiting.delete(uuid);
    if (this.kept.delete(uuid)) localStorage.removeItem(this.prefix + uuid);
  }

  #stored() {
    const found = [];
    try {
      for (let index = 0; index < localStorage.length; index += 1) {
        const key = localStorage.key(index);
        if (key?.startsWith(this.prefix)) found.push(JSON.parse(localStorage.getItem(key) ?? "null"));
      }
    } catch {
      // Storage that is blocked or damaged holds nothing for us.
    }
    return found.filter((entry) => entry && entry.uuid);
  }
}

let lastOrder = 0;
function nextOrder() {
  // Microseconds since 1970, made strictly growing: two keys in one millisecond keep their order.
  lastOrder = Math.max(lastOrder + 1, Math.round((performance.timeOrigin + performance.now()) * 1000));
  return lastOrder;
}
