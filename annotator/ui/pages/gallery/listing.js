// @ts-check
/**
 * The images of the filter as the server lists them, in chunks: asked for where the person looks, kept for a while.
 * Requests for what was scrolled past are given up.
 *
 * A listing stays as it was made, so that no answer moves an image that is looked at: the server is told its version. What
 * tiles show is read anew. A server that knows the version no more lists anew, and says so by another one.
 */

import { LocalAnswers } from "./local_answers.js";

export const IMAGES_PER_CHUNK = 120; // images in one request
const MAX_CACHED_CHUNKS = 60; // chunks
const MAX_PARALLEL_REQUESTS = 2; // requests
const RETRY_MILLISECONDS = 1500;

/**
 * @typedef {{id: number, name: string, width: number, height: number, labels: [number, number][], flag: string | null,
 *            comments: number, complete: boolean, probability?: number | null, measure?: string, hidden?: boolean, aside?: boolean}} Image
 *   labels: [class, state]; measure: the number that is sorted by, in words; an image is never changed: what has changed is another object
 * @typedef {{images: Image[], stale: boolean}} Chunk
 */

export class Listing {
  /**
   * @param {{session: import("../shared/session.js").Session, request: () => object, onNews: () => void,
   *          onMoved: () => void}} options
   *   request   filter and order, as the routes want them
   *   onNews    there are other images, or another number of them, or there is another trouble
   *   onMoved   the server has listed anew: images may have other places
   */
  constructor({ session, request, onNews, onMoved }) {
    this.session = session;
    this.wanting = request;
    this.onNews = onNews;
    this.onMoved = onMoved;
    this.localAnswers = new LocalAnswers(session.outbox);
    /** How many images the filter has; null: not known yet. @type {number | null} */
    this.total = null;
    this.trouble = "";
    this.version = "";
    /** Whether a new listing might differ. */
    this.changed = false;
    /** By their place, those used last at the end. @type {Map<number, Chunk>} */
    this.chunks = new Map();
    /** Places of chunks in sight. @type {number[]} */
    this.wanted = [];
    /** Requests under way, by the place of their chunk. @type {Map<number, {number: number, stop: AbortController}>} */
    this.asking = new Map();
    this.requests = 0;
    this.timer = 0;
    this.closed = false;
  }

  /** Whether an answer is awaited. */
  get busy() {
    return this.asking.size > 0;
  }

  /** What every route of the gallery is asked. */
  get request() {
    return { ...this.wanting(), version: this.version };
  }

  /** @param {number} index @returns {Image | null} null while it is not known */
  item(index) {
    return this.chunks.get(Math.floor(index / IMAGES_PER_CHUNK))?.images[index % IMAGES_PER_CHUNK] ?? null;
  }

  /** The images that are known. */
  known() {
    return [...this.chunks.values()].flatMap(({ images }) => images);
  }

  /** Images first to last are in sight. @param {number} first @param {number} last */
  want(first, last) {
    const places = [];
    const from = Math.max(0, Math.floor(first / IMAGES_PER_CHUNK));
    for (let place = from; place <= Math.floor(Math.max(first, last) / IMAGES_PER_CHUNK); place += 1) places.push(place);
    this.wanted = places;
    for (const [place, { stop }] of this.asking) if (!places.includes(place)) stop.abort();
    this.#ask();
  }

  /** Another filter or order: nothing of before is true of it. */
  restart() {
    this.chunks.clear();
    this.total = null;
    this.version = "";
    this.changed = false;
    for (const { stop } of this.asking.values()) stop.abort();
    this.asking.clear();
    this.want(0, IMAGES_PER_CHUNK - 1);
  }

  /** Read anew what the tiles in sight show. */
  refresh() {
    for (const chunk of this.chunks.values()) chunk.stale = true;
    this.#ask();
  }

  /** Where an image is now; null when it is not in the list, or nobody could be asked. @param {number} image @returns {Promise<number | null>} */
  async place(image) {
    const asked = JSON.stringify(this.wanting());
    const answer = await this.session.api.post("/api/gallery/place", { ...this.request, image }).catch(() => null);
    return asked === JSON.stringify(this.wanting()) ? answer?.place ?? null : null;
  }

  /** These cells are so from now on, whatever the server answered before. @param {[number, number, number | null][]} cells */
  change(cells) {
    this.localAnswers.add(cells);
    this.#repaint();
  }

  /** The server alone knows these cells. @param {[number, number][]} cells */
  forget(cells) {
    this.localAnswers.forget(cells);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    for (const { stop } of this.asking.values()) stop.abort();
  }

  #repaint() {
    for (const chunk of this.chunks.values()) chunk.images = chunk.images.map((image) => this.localAnswers.applyTo(image, Infinity));
  }

  #ask() {
    if (this.closed) return;
    for (const place of this.wanted) {
      if (this.asking.size >= MAX_PARALLEL_REQUESTS) return;
      const chunk = this.chunks.get(place);
      const beyond = this.total !== null && place * IMAGES_PER_CHUNK >= this.total && place > 0;
      if (!this.asking.has(place) && !beyond && (!chunk || chunk.stale)) this.#fetch(place);
    }
  }

  /** @param {number} place */
  async #fetch(place) {
    const stop = new AbortController();
    const request = { number: (this.requests += 1), stop };
    this.asking.set(place, request);
    const body = { ...this.request, start: place * IMAGES_PER_CHUNK, count: IMAGES_PER_CHUNK };
    try {
      const answer = await this.session.api.post("/api/gallery", body, { signal: stop.signal });
      if (this.asking.get(place) !== request || this.closed) return; // of another filter
      this.#take(place, answer, request.number);
      this.trouble = "";
    } catch (error) {
      if (this.asking.get(place) === request) this.asking.delete(place);
      if (this.closed) return;
      if (stop.signal.aborted) this.#ask();
      else this.#onTrouble(error);
      return;
    }
    this.asking.delete(place);
    this.onNews();
    this.#ask();
  }

  /** @param {number} place @param {any} answer @param {number} number of the request */
  #take(place, answer, number) {
    if (answer.version !== this.version) {
      const moved = this.version !== "";
      for (const chunk of this.chunks.values()) chunk.stale = true;
      this.version = answer.version;
      if (moved) this.onMoved();
    }
    this.total = answer.total;
    this.changed = answer.changed;
    this.session.followClasses(answer.class_version);
    const others = [...this.asking.values()].map((request) => request.number);
    this.localAnswers.dropKnown(this.requests, Math.min(...others));
    this.chunks.delete(place);
    this.chunks.set(place, { images: answer.images.map((/** @type {Image} */ image) => this.localAnswers.applyTo(image, number)), stale: false });
    for (const old of this.chunks.keys()) {
      if (this.chunks.size <= MAX_CACHED_CHUNKS) break;
      if (!this.wanted.includes(old)) this.chunks.delete(old);
    }
  }

  /** @param {any} error */
  #onTrouble(error) {
    // 409: a class of the filter was archived, perhaps; the page's script knows.
    if (error.status === 401 || (error.status === 409 && error.message !== this.trouble)) this.session.renew();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.#ask(), RETRY_MILLISECONDS);
    this.trouble = error.message;
    this.onNews();
  }
}
