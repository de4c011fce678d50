// @ts-check
/**
 * The images in a person's hands: the one on screen, those that come next (fetched and decoded already) and what was
 * decided before. Which image comes next is the server's affair; here it only never has to be waited for.
 */

import { afterPaint } from "./dom.js";

const LOW = 48; // ask for more below this many
const WANT = 64;
const AHEAD_PIXELS = 60e6; // pictures decoded before they are needed, 240 MB at most: all in hand, when they are small
const DISPLAY_PIXELS = 1600 * 1600; // the server sends nothing larger
const RENEW = 8000; // milliseconds: the lease of everything in hand is renewed, the worker's line refreshed
const RETRY = 1500;
const LOOK_AGAIN = 3000; // with nothing in hand

export class Hand {
  /**
   * @param {{api: import("./api.js").Api, outbox: import("./outbox.js").Outbox, mode: string,
   *          threshold: () => number | null, onShow: () => void, onNews: () => void}} options
   */
  constructor({ api, outbox, mode, threshold, onShow, onNews }) {
    this.api = api;
    this.outbox = outbox;
    this.mode = mode;
    this.threshold = threshold;
    this.onShow = onShow;
    this.onNews = onNews;
    Object.assign(this, holderNames(mode));
    /** @type {any[]} */
    this.queue = [];
    /** @type {any} */
    this.current = null;
    /** @type {Set<number>} */
    this.passed = new Set();
    this.news = { left: null, mine: 0, empty: "", worker: "", run: null };
    this.trouble = "";
    this.shownAt = 0;
    this.asking = false;
    this.again = false;
    this.closed = false;
    this.timer = 0;
    this.leaving = () => this.#letGo();
    this.returning = (/** @type {PageTransitionEvent} */ event) => event.persisted && this.ask();
    window.addEventListener("pagehide", this.leaving);
    window.addEventListener("pageshow", this.returning);
    this.refill = afterPaint(() => this.#refill());
    this.ask();
  }

  /** Whether the picture on screen is the current image's, so that a key can be about it. */
  get ready() {
    return Boolean(this.current?.loaded);
  }

  /** Milliseconds for which the current image has been on screen. */
  get looked() {
    return Math.round(performance.now() - this.shownAt);
  }

  /** Keep the counts in step until the server sends its own. @param {number} labeled @param {number} decided */
  count(labeled, decided) {
    if (this.news.left != null) this.news.left -= labeled;
    this.news.mine += decided;
  }

  /** Go on to the next image. */
  advance() {
    this.current = null;
    this.#show();
    this.refill();
  }

  /** Bring an image back on screen; the one there now comes right after it. @param {any} item */
  bringBack(item) {
    if (this.current?.id === item.id) return;
    this.queue = this.queue.filter((other) => other.id !== item.id);
    if (this.current) this.queue.unshift(this.current);
    this.passed.delete(item.id);
    this.current = null;
    this.queue.unshift(item);
    this.#show();
  }

  /** Forget what is in hand and ask anew (another threshold). */
  restart() {
    this.queue = [];
    this.current = null;
    this.passed.clear();
    this.#show();
    this.ask();
  }

  /** Leave: what is in hand is free for others, and for this person's other pages, at once. */
  close() {
    this.closed = true;
    clearTimeout(this.timer);
    window.removeEventListener("pagehide", this.leaving);
    window.removeEventListener("pageshow", this.returning);
    this.#letGo();
  }

  /** Ask the server for images and news. */
  async ask() {
    if (this.asking) {
      this.again = true;
      return;
    }
    clearTimeout(this.timer);
    this.asking = true;
    let pause = RENEW;
    try {
      const inHand = [this.current, ...this.queue].filter(Boolean).map((item) => item.id);
      const room = inHand.length < LOW ? WANT - inHand.length : 0;
      const threshold = this.threshold();
      const news = await this.api.post("/api/work", {
        mode: this.mode,
        holder: this.holder,
        instead: this.instead,
        have: [...new Set([...inHand, ...this.outbox.images()])],
        passed: [...this.passed].slice(-5000),
        want: room,
        threshold,
      });
      if (this.closed || threshold !== this.threshold()) return;
      const held = new Set([this.current, ...this.queue].filter(Boolean).map((item) => item.id));
      const waiting = new Set(this.outbox.images());
      for (const item of news.images) {
        if (!held.has(item.id) && !waiting.has(item.id) && !this.passed.has(item.id)) this.queue.push(item);
      }
      this.news = news;
      // The server does not know yet of what waits here.
      this.count(waiting.size, this.outbox.waiting.size);
      this.trouble = "";
      if (!this.current) {
        this.#show();
        if (!this.current) pause = LOOK_AGAIN;
      }
      this.#prefetch();
    } catch (error) {
      this.trouble = error.message;
      if (error.status === 401) this.outbox.onExpired();
      pause = RETRY;
    } finally {
      this.asking = false;
      if (!this.closed) {
        this.onNews();
        this.timer = window.setTimeout(() => this.ask(), this.again ? 0 : pause);
        this.again = false;
      }
    }
  }

  #letGo() {
    const nothing = { mode: this.mode, holder: this.holder, have: [], want: 0 };
    this.api.post("/api/work", nothing, { keepalive: true }).catch(() => {}); // else the leases run out by themselves
  }

  #refill() {
    if (this.closed) return;
    if (this.queue.length < LOW) this.ask();
    this.#prefetch();
  }

  #show() {
    this.current = this.queue.shift() ?? null;
    if (this.current) {
      this.#load(this.current);
      if (this.current.loaded) this.shownAt = performance.now();
    }
    this.onShow();
  }

  #prefetch() {
    let room = AHEAD_PIXELS;
    for (const item of this.queue) {
      room -= Math.min(item.width * item.height, DISPLAY_PIXELS);
      if (room > 0) this.#load(item);
      else item.picture = item.loaded = undefined; // far back again, after many were undone
    }
  }

  /** @param {any} item */
  #load(item) {
    if (item.picture) return;
    const picture = new Image();
    picture.decoding = "sync";
    picture.draggable = false;
    picture.alt = item.name;
    picture.dataset.image = String(item.id);
    picture.src = this.api.url(`/api/image/${item.id}`);
    item.picture = picture;
    item.broken = "";
    picture
      .decode()
      .then(() => {
        item.loaded = true;
      })
      .catch(async () => {
        item.broken = await this.#reason(item);
        item.picture = undefined;
      })
      .finally(() => {
        if (this.current === item && !this.closed) {
          this.shownAt = performance.now();
          this.onShow();
        }
      });
  }

  /** Why the picture did not come. @param {any} item */
  async #reason(item) {
    try {
      const response = await fetch(this.api.url(`/api/image/${item.id}`));
      if (response.ok) return "this browser cannot show it";
      return (await response.json()).error ?? `the server answered ${response.status}`;
    } catch {
      window.setTimeout(() => this.current === item && this.#load(item), RETRY);
      return "the server cannot be reached; it is tried again";
    }
  }
}

/**
 * A name of its own for this page, and the one it had before a reload, so that the same images come back. The two are
 * never the same: what an older page says late, on its way out, must not free what the newer one holds.
 * @param {string} mode
 */
function holderNames(mode) {
  const key = `annotator:holder:${mode}`;
  const holder = crypto.randomUUID();
  let instead = "";
  try {
    const known = sessionStorage.getItem(key) ?? "";
    // A duplicated tab copies the session: that name is still in use by the page it was copied from.
    const reloaded = performance.getEntriesByType("navigation")[0]?.type === "reload";
    if (reloaded || ours.has(known)) instead = known;
    sessionStorage.setItem(key, holder);
  } catch {
    // Without storage the images of before come back when their lease has run out.
  }
  ours.add(holder);
  return { holder, instead };
}

/** Names that pages of this window have had. @type {Set<string>} */
const ours = new Set();
