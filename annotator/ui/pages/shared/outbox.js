// @ts-check
/**
 * Decisions that the server has not acknowledged yet.
 *
 * Each is in localStorage under its own uuid from the key press until the server acknowledges it, so a reload, a closed
 * tab or a killed server loses nothing. The server knows each uuid, so sending twice doubles nothing. Tabs share the
 * storage: any open tab sends what is there, in the order in which it was given. Each decision carries the token it was
 * given under, so that it keeps its author when somebody else uses the page by then.
 *
 * Decisions that the server refuses for good are kept apart (refused_decisions.js) and never block the rest.
 */

import { RefusedDecisions, readStoredDecisions } from "./refused_decisions.js";
import { DailyActivity } from "./daily_activity.js";
import { afterPaint } from "./dom.js";

const MAX_BATCH_DECISIONS = 100;
const FIRST_PAUSE_MILLISECONDS = 400;
const MAX_PAUSE_MILLISECONDS = 15000;
const UNREADABLE_STATUSES = [400, 413]; // statuses of a request that can never be accepted; all others may pass
const ADOPT_MILLISECONDS = 5000; // milliseconds after which a decision of another tab is sent from here: that tab is closed or stuck

export class Outbox {
  /**
   * @param {{api: import("./api.js").Api, project: string, annotator: string, onChange: () => void,
   *          onExpired: () => void, onOpinion: () => void,
   *          onContradicted: (found: [number, number, number, number, number][]) => void}} options
   *   onContradicted: told what batches contradict, as the server has it (contradictions.js)
   */
  constructor({ api, project, annotator, onChange, onExpired, onOpinion, onContradicted }) {
    this.api = api;
    this.prefix = `annotator:${project}:unsaved:`;
    this.annotator = annotator;
    this.onChange = onChange;
    this.onExpired = onExpired;
    this.onOpinion = onOpinion;
    this.onContradicted = onContradicted;
    this.saved = 0;
    this.waitedCount = 0; // decisions that have begun to wait
    this.refused = new RefusedDecisions(project, onChange);
    this.dailyActivity = new DailyActivity();
    this.trouble = "";
    /** @type {Map<string, any>} */
    this.waiting = new Map();
    /** The uuids of these that localStorage holds. @type {Set<string>} */
    this.inStorage = new Set();
    this.#loadFromStorage(() => true);
    this.batchSize = MAX_BATCH_DECISIONS; // decisions in one request
    this.pause = FIRST_PAUSE_MILLISECONDS;
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
    const given = Object.entries(decision).map(([name, value]) => [name, typeof value === "string" ? wellFormed(value) : value]);
    const entry = { ...Object.fromEntries(given), uuid, annotator: this.annotator, pass: this.api.token, order: nextOrder() };
    this.#persist(entry);
    this.dailyActivity.add(uuid, entry);
    this.onChange();
    this.send(); // after the next frame: it is safe in the storage
    return uuid;
  }

  /**
   * Begin to read counts from the server. While a decision waits, it is unknown whether these counts contain it: the server
   * may have stored it and not answered yet.
   * @returns {() => boolean} whether no decision has waited since, so that the counts contain all decisions of this page
   */
  beginCountReading() {
    const before = this.waiting.size ? NaN : this.waitedCount;
    return () => before === this.waitedCount;
  }

  /** Image ids with a decision the server may not know yet. */
  listUnsavedImages() {
    const ids = new Set();
    for (const entry of this.waiting.values()) {
      if (entry.image != null) ids.add(entry.image);
      for (const [image] of [...(entry.cells ?? []), ...(entry.copies ?? [])]) ids.add(image);
    }
    return [...ids];
  }

  /** Cells [image, class] with an answer the server may not know yet. @returns {[number, number][]} */
  listUnsavedCells() {
    return [...this.waiting.values()].flatMap((entry) =>
      entry.cells ? [...entry.cells, ...(entry.copies ?? [])].map(([image, class_id]) => /** @type {[number, number]} */ ([image, class_id])) : entry.class == null ? [] : [[entry.image, entry.class]]);
  }

  /** Send what waits. Concurrent calls share one promise. @returns {Promise<void>} */
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
        const batch = [...this.waiting.values()].sort((a, b) => a.order - b.order).slice(0, this.batchSize);
        const answer = await this.#post(batch);
        const saved = new Set(answer.saved);
        this.trouble = "";
        if (answer.refused) this.dailyActivity.take(batch.map(({ uuid }) => uuid), answer.today);
        batch.forEach(({ uuid }, place) => {
          if (saved.has(uuid)) {
            this.#forget(uuid);
            this.saved += 1;
          } else if (answer.refused) {
            this.#refuse(uuid, answer.refused[uuid] ?? answer.refused[`#${place + 1}`] ?? "the server did not recognize it");
          }
        });
        this.pause = FIRST_PAUSE_MILLISECONDS;
        this.onChange();
        if (answer.opinions?.length) this.onOpinion();
        if (answer.contradicted?.length) this.onContradicted(answer.contradicted);
      }
    } catch (error) {
      this.trouble = error.message;
      if (error.status === 401) this.onExpired();
      if (!this.closed) this.timer = window.setTimeout(() => this.flush(), this.pause);
      this.pause = Math.min(this.pause * 2, MAX_PAUSE_MILLISECONDS);
      this.onChange();
    }
  }

  /**
   * Send a batch. If the server cannot read it, the next one has half the size, until the unreadable decision is alone.
   * @param {any[]} batch @returns {Promise<{saved: string[], refused: Record<string, string> | null, opinions?: string[], contradicted?: any[], today?: import("./daily_activity.js").Count}>}
   */
  async #post(batch) {
    try {
      const answer = await this.api.post("/api/decisions", { decisions: batch.map((entry) => this.#addSignature(entry)) }, { keepalive: true });
      this.batchSize = Math.min(this.batchSize * 2, MAX_BATCH_DECISIONS);
      return answer;
    } catch (error) {
      if (!UNREADABLE_STATUSES.includes(error.status)) throw error;
      this.batchSize = Math.ceil(batch.length / 2);
      return { saved: [], refused: batch.length > 1 ? null : { [batch[0].uuid]: error.message } };
    }
  }

  /** The decision as it is sent: with its token where that is of another person than the page's. @param {any} entry */
  #addSignature({ pass, order, ...entry }) {
    return entry.annotator === this.annotator ? entry : { ...entry, pass };
  }

  /** The server will never store it. @param {string} uuid @param {string} reason */
  #refuse(uuid, reason) {
    const entry = this.waiting.get(uuid);
    this.#forget(uuid); // first: a full storage has no room for both
    if (!this.refused.add(uuid, entry, String(reason))) this.trouble = "this browser's storage is full: download what was not saved";
  }

  /** Send the refused decisions again: the server may know the image by now, or the annotator is another one. */
  retryRefused() {
    for (const [uuid, { decision }] of [...this.refused.entries]) {
      this.#persist({ ...decision, uuid });
      this.refused.dismiss(uuid);
    }
    this.flush();
  }

  /**
   * Adopt decisions that closed tabs have left in the storage. Decisions in memory are never dropped because the storage
   * lost them: only the server's acknowledgement counts, and sending twice is harmless.
   */
  adoptOrphans() {
    const now = Date.now() * 1000;
    // From the future: the clock was set back since, and says nothing about that tab.
    this.#loadFromStorage((entry) => Math.abs(now - entry.order) > ADOPT_MILLISECONDS * 1000);
    const before = this.refused.size;
    this.refused.read();
    if (this.refused.size !== before) this.onChange();
    if (this.waiting.size) this.flush();
  }

  close() {
    this.closed = true;
    this.dailyActivity.close();
    clearTimeout(this.timer);
    window.removeEventListener("online", this.online);
  }

  /** @param {string} uuid */
  #forget(uuid) {
    this.waiting.delete(uuid);
    if (this.inStorage.delete(uuid)) localStorage.removeItem(this.prefix + uuid);
  }

  /** @param {any} entry */
  #wait(entry) {
    this.waiting.set(entry.uuid, entry);
    this.waitedCount += 1;
  }

  /** @param {any} entry */
  #persist(entry) {
    this.#wait(entry);
    try {
      localStorage.setItem(this.prefix + entry.uuid, JSON.stringify(entry));
      this.inStorage.add(entry.uuid);
    } catch {
      this.trouble = "this browser's storage is full: keep this page open until everything is saved";
    }
  }

  /** Read decisions from the storage that are not in memory. @param {(entry: any) => boolean} wanted */
  #loadFromStorage(wanted) {
    for (const [uuid, entry] of readStoredDecisions(this.prefix)) {
      if (this.waiting.has(uuid)) continue;
      if (!makesSense(entry)) {
        localStorage.removeItem(this.prefix + uuid);
        this.refused.add(uuid, Object(entry), "it was damaged in this browser's storage");
      } else if (wanted(entry)) {
        this.#wait({ ...entry, uuid });
        this.inStorage.add(uuid);
        if (Number.isSafeInteger(entry.order)) lastOrder = Math.max(lastOrder, entry.order);
      }
    }
  }
}

/** Whether it has the form of a decision; the server checks the rest. @param {any} entry */
function makesSense(entry) {
  const { action, order, cells, copies } = Object(entry);
  const areRows = (/** @type {any} */ rows) => rows == null || (Array.isArray(rows) && rows.every(Array.isArray));
  return typeof action === "string" && Number.isFinite(order) && areRows(cells) && areRows(copies);
}

/** Replaces lone surrogates, which cannot be stored, by the replacement character. @param {string} text */
function wellFormed(text) {
  return text.replace(/\p{Cs}/gu, "\ufffd");
}

let lastOrder = 0;
function nextOrder() {
  // Microseconds since 1970, made strictly growing: two keys in one millisecond keep their order, and what is given now
  // comes after what waits from before, when the clock was set back in between.
  lastOrder = Math.max(lastOrder + 1, Math.round((performance.timeOrigin + performance.now()) * 1000));
  return lastOrder;
}
