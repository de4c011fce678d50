// @ts-check
/**
 * The base of the hot pages (Annotate, Review, Grid, Autopilot): one item on screen, a key decides, the next item is
 * shown in the next frame. It wires the session (decisions that are never lost, undo, keys, help, status line) to the
 * item queue (the items fetched ahead, and their leases) and follows Streamlit's reruns.
 *
 * A page is a subclass. Its constructor calls super, puts its elements into session.element and calls begin() with what
 * to ask the server for. It says
 *
 *   paint()              how items.current is put on screen, or describeWait(items) while there is nothing to show
 *   onKey(key, event)    what a key does; true when it was the page's
 *
 * and, where it needs to: onKeyUp, onNews, onForeignStep, showClasses, close. An answer goes through perform(). Work that can
 * wait for the next frame is wrapped in afterPaint (dom.js): nothing else may run between a key and its frame.
 */

import { ItemQueue } from "./item_queue.js";
import { describeWait } from "./placeholder.js";
import { describeDecision } from "./decision_words.js";
import { Session } from "./session.js";

/** @typedef {import("./item_queue.js").Item} Item */
/** @typedef {Omit<import("./item_queue.js").ItemQueueOptions, "session" | "mode" | "onShow" | "onNews">} Queue */

export class Page {
  /**
   * @param {any} component what Streamlit hands over: data, parentElement, setTriggerValue
   * @param {{name: string, keys: {title: string, rows: [string | string[], string][]}[], hints: import("./hints.js").Hint[]}} about
   *   name: also what its leases and its hints are kept under; keys: what the help lists; hints: for a first visit
   */
  constructor(component, { name, keys, hints }) {
    this.session = new Session(component, {
      page: name,
      keys,
      hints,
      onKey: (key, event) => this.onKey(key, event),
      onKeyUp: (key) => this.onKeyUp(key),
      onUndo: (step, how) => this.onForeignStep(step, how),
      onTakeBack: (cells) => this.withdrawAnswers(cells),
      getHistoryImage: () => this.getHistoryImage(),
      onComment: (item, note) => this.comment(item, note),
      onRemove: (item, uuid, note) => this.removeComment(item, uuid, note),
    });
    this.name = name;
  }

  /** Ask for the first items; to be called once, when the page's elements are there. @param {Queue} queue */
  begin(queue) {
    /** @type {ItemQueue} */
    this.items = this.session.items = new ItemQueue({
      session: this.session,
      mode: this.name,
      onShow: () => this.paint(),
      onNews: () => this.onNews(),
      ...queue,
    });
    this.items.start();
    this.paint();
  }

  /** Streamlit ran the page's script again: a fresh token, perhaps other classes. @param {any} component */
  update(component) {
    if (this.session.applyRerun(component)) this.showClasses();
  }

  unmount() {
    this.close();
    this.session.close();
  }

  // What a page says of itself

  paint() {}

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  onKey(key, event) {
    return false;
  }

  /** A key was let go. @param {string} key */
  onKeyUp(key) {}

  /** The server's counts are there, perhaps with items. */
  onNews() {
    if (!this.items.current) this.paint();
  }

  /**
   * A step from before a reload, or of another page, was undone or redone: nothing here knows how to show it.
   * @param {import("./session.js").Step} step @param {"undone" | "redone"} how
   */
  onForeignStep(step, how) {}

  /** The project has other classes, or other names of them. */
  showClasses() {}

  /** The page is left; its session is closed after this. */
  close() {}

  /** The image whose history `;` shows; null where earlier answers are hidden. @returns {any} */
  getHistoryImage() {
    return null;
  }

  /** The image has another number of comments. */
  showComments() {}

  /** Held items have lost answers, or have them back. */
  showAnswers() {}

  // What a page does

  /**
   * Take a step that undo takes back and redo repeats.
   * @param {any} entry the decision without its uuid; null where there is nothing to store
   * @param {{forward: () => void, back: () => void, words?: string, answered?: number, complete?: number}} screen
   *   forward, back        put the screen as it is after the step, and as it was before
   *   words                of the step, said when it is undone or redone; without them the entry's own
   *   answered, complete   how many more pairs are answered after it, and how many more images are complete
   */
  perform(entry, { forward, back, words = this.describeDecision(entry), answered = countAnsweredPairs(entry), complete = 0 }) {
    const go = () => {
      this.items?.adjustCounts(answered, complete);
      forward();
    };
    const screen = {
      back: () => {
        this.items?.adjustCounts(-answered, -complete);
        back();
        this.announceUndo("undone", words);
      },
      again: () => {
        go();
        this.announceUndo("redone", words);
      },
    };
    if (entry) this.session.decide(entry, screen); // safe in the browser before anything changes on screen
    else this.session.addViewStep(screen);
    go();
  }

  /**
   * Say what was undone or redone, unless something else has been done since.
   * @param {"undone" | "redone"} how @param {string} words of the step, "" for none @param {import("./session.js").Step} [step]
   */
  announceUndo(how, words, step) {
    const steps = how === "undone" ? this.session.undone : this.session.history;
    if (words && (!step || steps[steps.length - 1] === step)) this.session.showMessage(`${how === "undone" ? "Undid" : "Redid"}: ${words}.`, true);
  }

  /** A decision in words, with the name of its image where that is held. @param {any} entry null: "" */
  describeDecision(entry) {
    const id = entry?.image ?? [...(entry?.cells ?? []), ...(entry?.copies ?? [])][0]?.[0];
    return entry ? describeDecision(entry, this.session.names, id == null ? "" : this.imageName(id) || this.session.imageNames.get(id)) : "";
  }

  /** The name of an image, "" where it is not held. @param {number} id */
  imageName(id) {
    const { current, queue, earlierItems } = this.items;
    return [current, ...queue, ...earlierItems].find((item) => item?.id === id)?.name ?? "";
  }

  /** Take back older answers, which others contradict: one step. @param {[number, number, number][]} cells image, class, state */
  withdrawAnswers(cells) {
    const gone = new Set(cells.map(([image, id]) => `${image} ${id}`));
    const { current, queue, earlierItems } = this.items ?? { current: null, queue: [], earlierItems: [] };
    const held = [current, ...queue, ...earlierItems].map((/** @type {any} */ item) => item?.item ?? item).filter((item) => item?.labels);
    const before = held.map((item) => ({ item, labels: item.labels }));
    this.perform({ action: "batch", source: "click", cells: cells.map(([image, id]) => [image, id, null, null]) }, {
      forward: () => {
        for (const item of held) item.labels = item.labels.filter((/** @type {any} */ label) => !gone.has(`${item.id} ${label.class}`));
        this.showAnswers();
      },
      back: () => {
        for (const { item, labels } of before) item.labels = labels;
        this.showAnswers();
      },
    });
  }

  /** @param {any} item an image @param {string} note */
  comment(item, note) {
    const entry = { action: "comment", image: item.id, note, source: "click", milliseconds: this.items?.viewMilliseconds };
    this.perform(entry, { forward: this.#changeComments(item, 1), back: this.#changeComments(item, -1) });
  }

  /** @param {any} item an image @param {string} uuid of a comment of this person @param {string} note what it says */
  removeComment(item, uuid, note) {
    const entry = { action: "comment", image: item.id, note, source: "click" };
    this.session.undoDecision({ uuid, entry, back: this.#changeComments(item, -1), again: this.#changeComments(item, 1) });
  }

  /** @param {any} item @param {1 | -1} by */
  #changeComments(item, by) {
    return () => {
      item.comments = Math.max(0, (item.comments ?? 0) + by);
      this.showComments();
    };
  }

  /** Have an item on screen that may have been left since. @param {Item} item */
  returnTo(item) {
    if (this.items.current?.id !== item.id) this.items.bringBack(item);
  }

  /**
   * The item that a press decides about: the one whose picture is on screen. Null, with a word, where it decides nothing.
   * @param {import("./press_guard.js").Kind} [kind] @returns {Item | null}
   */
  getPressedItem(kind) {
    if (this.items.isReady) return this.session.pressGuard.allows(kind) ? this.items.current : null;
    if (this.items.current) this.session.showMessage(`${describeWait(this.items)} Nothing was answered.`);
    return null;
  }

  /** Ask anew for all items that were not on screen: others are wanted. @param {(item: Item) => void} drop told of each */
  refetchQueue(drop) {
    const unseen = this.items.queue.filter((item) => !item.seen);
    this.items.queue = this.items.queue.filter((item) => item.seen);
    unseen.forEach(drop);
    this.items.fetchMore();
  }

  async showEarlier() {
    if (!(await this.items.showEarlier())) this.session.showMessage("There is no previous image.");
  }

  /**
   * Add a class while labeling. What may be a surprise about it, or went wrong, comes back instead of the class.
   * @param {string} name @param {boolean} sure whether the person has seen what may be a surprise
   */
  async addClass(name, sure) {
    try {
      const answer = await this.session.api.post("/api/classes/add", { name, sure });
      if (!answer.classes) return { surprises: answer.surprises };
      if (this.session.applyClasses(answer)) this.showClasses();
      return { class_: this.session.classes.find((class_) => class_.id === answer.class) };
    } catch (error) {
      return { surprises: [`${error.message}`] };
    }
  }

  /** @param {string} words where the next image is a new one */
  showLater(words) {
    if (!this.items.showLater()) this.session.showMessage(words);
  }
}

/** How many more pairs are answered after a decision about pairs without an answer. @param {any} entry null: 0 */
function countAnsweredPairs(entry) {
  const { action, cells = [], copies = [] } = entry ?? {};
  if (action === "label") return 1;
  if (action === "clear") return -1;
  return cells.reduce((/** @type {number} */ sum, /** @type {any[]} */ [, , state]) => sum + (state == null ? -1 : 1), copies.length);
}
