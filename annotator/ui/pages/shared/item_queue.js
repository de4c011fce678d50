// @ts-check
/**
 * The items of one person on one page: the image (or grid) on screen, those that come next, fetched and decoded ahead, and
 * those that were on screen before. The server decides what comes next; the queue only has it ready in time. When the
 * model has learned something, all but the next few items are asked for again.
 *
 * After half a minute without a key or click only the item on screen stays leased: the leases of the rest are released,
 * their pictures kept. The next key or click asks for these leases again; items that somebody else has taken are dropped.
 */

import { afterPaint } from "./dom.js";
import { getLeaseHolders } from "./lease_holder.js";
import { PictureLoader } from "./picture_loader.js";

const MAX_EARLIER_PICTURES = 30; // pictures of earlier images kept decoded
const RENEW_MILLISECONDS = 8000; // milliseconds between two renewals of the leases, which also refresh the status line
const LEARN_MILLISECONDS = 1200; // milliseconds after a decision until the model has probably learned from it
const RETRY_MILLISECONDS = 1500;
const IDLE_MILLISECONDS = 30_000; // milliseconds without a key or click: leases of what is not on screen are released
const EMPTY_RETRY_MILLISECONDS = 3000; // milliseconds, with nothing queued

/** @typedef {{id: any, loaded?: boolean, broken?: string, seen?: boolean, passedOn?: boolean, opened?: boolean, unheld?: boolean, picture?: HTMLImageElement, [more: string]: any}} Item */

/**
 * @typedef {{session: import("./session.js").Session, mode: string, onShow: () => void, onNews: () => void,
 *            path?: string, request?: () => object, place?: () => object, lowWater?: number, targetCount?: number,
 *            load?: (item: Item) => Promise<unknown>, cells?: (item: Item) => any[], waiting?: () => any[],
 *            first?: Item | null, steady?: number, savesFirst?: boolean, follows?: "version" | "run"}} ItemQueueOptions
 *   path, request   the route that is asked, and what it is asked besides
 *   place           what more the server is told; an answer counts even if it has changed meanwhile
 *   lowWater, targetCount   up to targetCount items are held; more are asked for as soon as fewer than lowWater are left
 *   load            fetches and decodes what an item shows; without it, its picture
 *   cells           what of an item is leased, as the server names it; waiting: the same of what was answered and is not saved
 *   first           an item that is there before the server has been asked
 *   steady          how many of the next items stay as they are, whatever the model learns
 *   savesFirst      with nothing in hand, the server is asked once it has all answers: only then can it say that none is missing
 *   follows         the rest is asked for anew when the model has learned from single decisions, or only after a new run
 */

export class ItemQueue {
  /** @param {ItemQueueOptions} options */
  constructor({
    session, mode, onShow, onNews, path = "/api/work", request, place, lowWater = 48, targetCount = 64, load, cells, waiting, first = null,
    steady = 2, savesFirst = false, follows = "version",
  }) {
    this.session = session;
    this.api = session.api;
    this.onShow = onShow;
    this.onNews = onNews;
    this.path = path;
    this.request = request ?? (() => ({ mode }));
    this.place = place ?? (() => ({}));
    this.lowWater = lowWater;
    this.targetCount = targetCount;
    this.steady = steady;
    this.savesFirst = savesFirst;
    this.follows = follows;
    this.pictureLoader = new PictureLoader(this, load);
    this.cells = cells ?? ((item) => [item.id]);
    this.waiting = waiting ?? (() => session.outbox.listUnsavedImages());
    const { holder, instead } = getLeaseHolders(mode);
    this.holder = holder;
    this.instead = instead;
    /** @type {Item[]} */
    this.queue = first ? [first] : [];
    /** @type {Item | null} */
    this.current = null;
    /** Items that were on screen before, the latest last. @type {Item[]} */
    this.earlierItems = [];
    /** Ids that the server must not give again. @type {Set<any>} */
    this.passed = new Set();
    this.news = { progress: null, empty: "", onward: [], worker: "", run: null };
    /** Whether nothing is in hand, was not when the news were asked for, and they hold all answers of this page. */
    this.isNewsFinal = false;
    this.trouble = "";
    /** An image is on its way that was asked for by its id; nothing is on screen meanwhile. @type {object | null} */
    this.opening = null;
    this.answeredAt = 0;
    this.isFetching = false;
    this.fetchAgain = false;
    this.closed = false;
    this.timer = 0;
    this.due = Infinity;
    /** The version of the model that all held items come from, and whether there is a newer one. */
    this.model = undefined;
    this.outdated = false;
    /** Whether the project's classes are others than those that the held items were chosen from. */
    this.otherClasses = false;
    this.leaving = () => this.#releaseLeases();
    this.returning = (/** @type {PageTransitionEvent} */ event) => event.persisted && this.fetchMore();
    window.addEventListener("pagehide", this.leaving);
    window.addEventListener("pageshow", this.returning);
    this.fetchIfLow = afterPaint(() => this.#fetchIfLow());
    this.wake = afterPaint(() => !this.closed && this.fetchMore());
    this.actedAt = performance.now();
    /** Whether only what is on screen is leased. */
    this.resting = false;
    this.fetchMore();
  }

  /** Put the item that was there from the beginning on screen. */
  start() {
    if (!this.current && this.queue.length) this.#show();
  }

  /** Whether the current item's picture is on screen and leased to this page, so that keys apply to it. */
  get isReady() {
    return Boolean(this.current?.loaded && !this.current.unheld);
  }

  /** The person has pressed a key or clicked. */
  noteActivity() {
    this.actedAt = performance.now();
    if (!this.resting) return;
    this.resting = false;
    this.wake();
  }

  /** Milliseconds for which the current item has been on screen, or since the last answer: so that no time counts twice. */
  get viewMilliseconds() {
    return Math.round(performance.now() - Math.max(this.session.pressGuard.since, this.answeredAt));
  }

  /**
   * Keep the counts in step until the server sends its own.
   * @param {number} answered how many more pairs are answered @param {number} complete how many more images are complete
   */
  adjustCounts(answered, complete) {
    const { progress } = this.news;
    if (!progress) return;
    progress.pairs_answered += answered;
    progress.images_complete += complete;
  }

  /** Go on to the first item that has not been on screen, past those gone back over; from an opened one to where one was. */
  advance() {
    const returns = this.current?.opened && !this.current.passedOn;
    this.#leaveCurrent();
    while (!returns && this.queue[0]?.passedOn) this.earlierItems.push(/** @type {Item} */ (this.queue.shift()));
    this.#show();
    this.fetchIfLow();
  }

  /** Back to the one before, also to images of before a reload. @returns {Promise<boolean>} whether there was one */
  async showEarlier() {
    if (!this.earlierItems.length) await this.#fetchOlder();
    const item = this.earlierItems.pop();
    if (!item || this.closed) return false;
    this.queue = this.queue.filter((other) => other.id !== item.id); // incomplete, it was given again
    if (this.current) this.queue.unshift(this.current);
    this.current = null;
    this.queue.unshift(item);
    this.#show();
    return true;
  }

  /** Forward again after `showEarlier` or `openById`; false where the next one is new. */
  showLater() {
    if (!this.current?.passedOn && !this.current?.opened) return false;
    this.#leaveCurrent();
    this.#show();
    this.fetchIfLow();
    return true;
  }

  /**
   * Put an image on screen that was asked for by its id, whoever has it; what was there comes right after it. Until it is
   * here nothing is on screen, so that no key is about another image.
   * @param {() => Promise<Item | null>} fetch null: there is none @returns {Promise<Item | null>} the opened one
   */
  async openById(fetch) {
    const turn = {};
    this.opening = turn;
    if (this.current) this.queue.unshift(this.current);
    this.current = null;
    this.onShow();
    const fetched = await fetch();
    if (this.closed || this.opening !== turn) return null;
    this.cancelOpening(fetched);
    return fetched && this.current;
  }

  /** Show this, or what there was before. @param {Item | null} [fetched] */
  cancelOpening(fetched = null) {
    this.opening = null;
    if (!fetched) {
      if (!this.current) this.#show();
      return;
    }
    const known = this.find(fetched.id);
    // What waits to be saved, the server does not know yet.
    if (known && !this.session.outbox.listUnsavedImages().includes(known.id)) Object.assign(known, fetched);
    this.bringBack(Object.assign(known ?? fetched, { opened: true }));
    this.fetchIfLow();
  }

  /** An item that is on screen, comes next, or was there before. @param {any} id @returns {Item | undefined} */
  find(id) {
    return [this.current, ...this.queue, ...this.earlierItems].find((item) => item?.id === id);
  }

  /** Bring an item back on screen because its decision was undone; the current one comes right after it. @param {Item} item */
  bringBack(item) {
    item.passedOn = false;
    this.passed.delete(item.id);
    if (this.current?.id === item.id) return;
    this.queue = this.queue.filter((other) => other.id !== item.id);
    this.earlierItems = this.earlierItems.filter((other) => other.id !== item.id);
    if (this.current) this.queue.unshift(this.current);
    this.current = null;
    this.queue.unshift(item);
    this.#show();
  }

  /** Bring back an image that is known by its id only. @param {number} id */
  async bringBackById(id) {
    const item = await this.session.fetchItem(id);
    if (item && !this.closed) this.bringBack(item);
    return item;
  }

  /** Forget all held items and ask anew: another filter, another class. */
  restart() {
    this.queue = [];
    this.current = null;
    this.passed.clear();
    this.outdated = false;
    this.#show();
    this.fetchMore();
  }

  /** The project has other classes: what was not on screen yet is asked for anew. */
  refetchUnseen() {
    this.outdated = this.otherClasses = true;
    this.fetchMore();
  }

  /** Release all leases at once, for others and for this person's other pages. */
  close() {
    this.closed = true;
    clearTimeout(this.timer);
    window.removeEventListener("pagehide", this.leaving);
    window.removeEventListener("pageshow", this.returning);
    this.#releaseLeases();
  }

  /** Ask the server for more, and for news. */
  async fetchMore() {
    if (this.isFetching) {
      this.fetchAgain = true;
      return;
    }
    clearTimeout(this.timer);
    this.isFetching = true;
    let pause = RENEW_MILLISECONDS;
    const { outbox } = this.session;
    if (this.savesFirst && !this.#listHeld().length && outbox.waiting.size && !outbox.trouble) await outbox.flush();
    const request = this.request();
    const asked = JSON.stringify(request);
    const resting = performance.now() - this.actedAt >= IDLE_MILLISECONDS;
    this.resting = resting;
    const anew = !resting && (this.outdated || !this.current);
    const replaced = new Set(anew ? this.#replaceable() : []);
    if (anew) this.otherClasses = false;
    const inHand = resting ? this.#listHeld().slice(0, 1) : this.#listHeld().filter((item) => !replaced.has(item));
    if (resting) for (const item of this.#listHeld().slice(1)) item.unheld = true;
    const areCountsExact = outbox.beginCountReading();
    const have = [...inHand.flatMap(this.cells), ...this.waiting()];
    try {
      const more = resting ? 1 : anew || inHand.length < this.lowWater ? this.targetCount : 0;
      const room = Math.max(0, more - inHand.length);
      const news = await this.api.post(this.path, {
        ...request,
        ...this.place(),
        holder: this.holder,
        instead: this.instead,
        have,
        passed: [...this.passed].slice(-5000),
        want: room,
      });
      if (this.closed) return;
      if (asked !== JSON.stringify(this.request())) {
        this.fetchAgain = true; // it was for something else
        return;
      }
      this.#dropLost(new Set(news.lost.map(String)));
      for (const item of inHand) item.unheld = false;
      const isExact = areCountsExact();
      this.#applyAnswer(news, replaced, isExact);
      this.isNewsFinal = isExact && !have.length && !this.current;
      const model = this.follows === "run" ? news.run : news.fresh;
      if (anew) this.model = model;
      this.outdated = this.model !== model;
      if (!resting && this.outdated && this.#replaceable().length) this.fetchAgain = true;
      if (!resting && this.#listHeld().some((item) => item.unheld)) this.fetchAgain = true; // shown since it was asked
      if (!this.current) pause = EMPTY_RETRY_MILLISECONDS;
      if (this.savesFirst && !this.current && !this.isNewsFinal && !outbox.trouble) this.fetchAgain = true;
      if (!isExact && !outbox.trouble) pause = LEARN_MILLISECONDS;
    } catch (error) {
      this.trouble = error.message;
      this.isNewsFinal = false;
      if (error.status === 401) this.session.renew();
      pause = RETRY_MILLISECONDS;
      if (!resting) for (const item of inHand) item.unheld = false; // whoever is cut off works on
    } finally {
      this.isFetching = false;
      if (!this.closed) {
        this.onNews();
        this.session.onStatusChanged();
        this.#scheduleFetch(this.fetchAgain ? 0 : pause);
        this.fetchAgain = false;
      }
    }
  }

  /** @param {number} pause in milliseconds */
  #scheduleFetch(pause) {
    clearTimeout(this.timer);
    this.due = performance.now() + pause;
    this.timer = window.setTimeout(() => this.fetchMore(), pause);
  }

  /** Items that are not among the next few and were not seen: replacing them is not noticed. */
  #replaceable() {
    return this.queue.filter((item) => !item.seen).slice(this.otherClasses ? 0 : this.steady);
  }

  /** Drop items that somebody else has open by now, unless the person has seen them. @param {Set<string>} lost */
  #dropLost(lost) {
    if (!lost.size) return;
    const taken = (/** @type {Item} */ item) => this.cells(item).some((cell) => lost.has(String(cell)));
    this.queue = this.queue.filter((item) => item.seen || !taken(item));
    // It was put on screen while the server was asked: no key was accepted for it. An opened one is shown, whoever has it.
    if (this.current?.unheld && !this.current.opened && taken(this.current)) this.#show();
  }

  /**
   * @param {any} news @param {Set<Item>} replaced what was asked for anew
   * @param {boolean} isExact whether the counts contain all decisions of this page
   */
  #applyAnswer(news, replaced, isExact) {
    /** @type {Map<any, Item>} */
    const before = new Map([...replaced].map((item) => [item.id, item]));
    this.queue = this.queue.filter((item) => !replaced.has(item));
    const held = new Set(this.#listHeld().map((item) => item.id));
    const waiting = new Set(this.session.outbox.listUnsavedImages());
    for (const item of news.items) {
      if (held.has(item.id) || waiting.has(item.id) || this.passed.has(item.id)) continue;
      const known = before.get(item.id);
      if (known?.seen) continue; // on screen since it was asked for anew, and perhaps answered and saved
      this.queue.push(known?.loaded ? { ...item, loaded: true, picture: known.picture, coming: known.coming } : item);
    }
    // Counts that may lack a decision of this page, or hold it already, do not replace the page's own.
    this.news = isExact || !this.news.progress ? news : { ...news, progress: this.news.progress };
    this.session.followClasses(news.class_version);
    this.trouble = "";
    if (!this.current && !this.opening) this.#show();
    if (!this.opening) this.pictureLoader.loadAhead(); // what was asked for by its id comes first
  }

  #listHeld() {
    return [this.current, ...this.queue].filter((item) => item != null);
  }

  #releaseLeases() {
    const nothing = { ...this.request(), ...this.place(), holder: this.holder, have: [], want: 0 };
    this.api.post(this.path, nothing, { keepalive: true }).catch(() => {}); // else the leases run out by themselves
  }

  #fetchIfLow() {
    if (this.closed) return;
    if (this.queue.length < this.lowWater) this.fetchMore();
    else if (this.follows === "version" && !this.isFetching && this.due > performance.now() + LEARN_MILLISECONDS) this.#scheduleFetch(LEARN_MILLISECONDS);
    this.pictureLoader.loadAhead();
  }

  #leaveCurrent() {
    if (!this.current) return;
    const { id } = this.current;
    this.current.passedOn = true;
    this.earlierItems = this.earlierItems.filter((other) => other.id !== id);
    this.earlierItems.push(this.current);
    const far = this.earlierItems.at(-1 - MAX_EARLIER_PICTURES);
    if (far) this.pictureLoader.forget(far);
    this.current = null;
  }

  #show() {
    this.current = this.queue.shift() ?? null;
    if (this.current) {
      this.isNewsFinal = false;
      this.current.seen = true;
      this.pictureLoader.load(this.current);
    }
    this.session.pressGuard.onItemShown();
    this.onShow();
  }

  async #fetchOlder() {
    const shown = new Set(this.#listHeld().map((item) => item.id));
    let id = this.session.older.pop();
    while (id != null && shown.has(id)) id = this.session.older.pop();
    const item = id == null ? null : await this.session.fetchItem(id);
    if (item) this.earlierItems.push({ ...item, passedOn: true });
  }
}
