// @ts-check
/**
 * What every hot page has: decisions that are never lost, undo and redo of all of them, keys, help, and the status line
 * at the foot.
 */

import { rememberName } from "./annotator_name.js";
import { Api } from "./api.js";
import { RefusedDecisionsDialog } from "./refused_decisions.js";
import { OVERRULE_KEY, askAboutBatch, overrule } from "./contradictions.js";
import { afterPaint, capitalize, el, keyButton } from "./dom.js";
import { openInAnnotate } from "./fix_link.js";
import { StatusLine } from "./status_line.js";
import { HelpDialog } from "./help.js";
import { HintRow } from "./hints.js";
import { HISTORY_KEY, HistoryDialog } from "./history.js";
import { ImageFinder } from "./image_finder.js";
import { isTyping, listenToKeys } from "./keys.js";
import { Outbox } from "./outbox.js";
import { Relations } from "./relations.js";
import { PressGuard } from "./press_guard.js";
import { RestingPointer } from "./resting_pointer.js";

const OPINION_TEXT = "People disagree on that. Your answer is noted; a reviewer decides.";
const BRIEF_MILLISECONDS = 4000; // milliseconds for which an ignored press is explained
const MAX_UNDO_STEPS = 500; // decisions that can be taken back
const ACTIVITY_EVENTS = ["keydown", "pointerdown", "wheel"]; // events of a person who is present
const ADOPT_MILLISECONDS = 3000; // milliseconds between two checks for decisions that closed tabs have left

/**
 * @typedef {{uuid: string | null, entry: any, back?: () => void, again?: () => void}} Step
 * One thing the person did. `back` and `again` update the screen after an undo and a redo; a step from before a reload, or
 * of another page, has neither.
 *
 * @typedef {{id: number, name: string, description: string, key: string, position: number, heading: string, colour: string,
 *   synonyms: string[], path?: string}} Class  path: what it is a kind of, "animal › dog"
 */

export class Session {
  /**
   * @param {any} component what Streamlit hands to mount()
   * @param {{page: string, keys: {title: string, rows: [string | string[], string][]}[], hints: import("./hints.js").Hint[],
   *          onKey: (key: string, event: KeyboardEvent) => boolean, onKeyUp?: (key: string) => void,
   *          onUndo: (step: Step, how: "undone" | "redone") => void, getHistoryImage: () => any,
   *          onTakeBack: (cells: [number, number, number][]) => void,
   *          onComment: (item: any, note: string) => void, onRemove: (item: any, uuid: string, note: string) => void}} options
   *   getHistoryImage: the image whose history may be seen; onTakeBack: older answers that others contradict; onComment, onRemove: a comment on it
   */
  constructor(
    { data, parentElement, setTriggerValue },
    { page, keys, hints, onKey, onKeyUp, onUndo, onTakeBack, getHistoryImage, onComment, onRemove },
  ) {
    this.renew = () => setTriggerValue("expired", Date.now());
    /** Whether the message on screen stays with other pictures, until the next decision. */
    this.lasts = false;
    this.briefTimer = 0;
    /** The version of the classes that was asked for last. */
    this.classesAsked = 0;
    this.root = parentElement;
    this.element = /** @type {HTMLElement} */ (parentElement.querySelector(".root"));
    this.onUndo = onUndo;
    this.getHistoryImage = getHistoryImage;
    this.onKey = onKey;
    /** @type {Step[]} */
    this.history = [];
    /** @type {Step[]} */
    this.undone = [];
    /** Ids of images answered before a reload, the newest last. @type {number[]} */
    this.older = [];
    /** Names of images that steps from before a reload are about. @type {Map<number, string>} */
    this.imageNames = new Map();
    /** @type {import("./item_queue.js").ItemQueue | undefined} */
    this.items = undefined;
    this.api = new Api(data.token);
    this.#applyData(data);
    this.statusLine = new StatusLine();
    this.drawStatusLine = afterPaint(() => this.statusLine.draw(this.outbox, this.items));
    this.outbox = new Outbox({
      api: this.api,
      project: data.project,
      annotator: data.annotator,
      onChange: () => this.onStatusChanged(),
      onExpired: () => this.renew(),
      onOpinion: () => this.showMessage(OPINION_TEXT),
      onContradicted: (found) => askAboutBatch(this, found, onTakeBack),
    });
    this.refusedDialog = new RefusedDecisionsDialog(this.outbox.refused, { names: () => this.names, onRetry: () => this.outbox.retryRefused() });
    this.statusLine.refusedButton.addEventListener("click", () => this.refusedDialog.open());
    this.historyDialog = new HistoryDialog(this, { onComment, onRemove });
    this.statusLine.element.append(this.refusedDialog.element, this.historyDialog.element);
    /** For the toolbar of a page that always shows one image. */
    this.historyButton = keyButton("History", HISTORY_KEY, () => this.showHistory());
    this.words = el("div", { class: "words", role: "status", "aria-live": "polite" });
    this.help = new HelpDialog(keys);
    this.hints = new HintRow(page, data.annotator, hints);
    /** What is done with an image that was found by its name. @type {(id: number) => void} */
    this.onImage = openInAnnotate;
    this.imageFinder = new ImageFinder(this.api, (id) => this.onImage(id));
    this.toolbar = el(
      "div",
      { class: "tools", role: "group", "aria-label": "Session" },
      keyButton("Undo", "Backspace", () => this.undo()),
      keyButton("Redo", "Shift+Backspace", () => this.redo()),
      keyButton("Keys", "?", () => this.help.open()),
    );
    this.noteActivity = () => this.items?.noteActivity();
    this.pressGuard = new PressGuard((text) => this.showBriefly(text));
    this.restingPointer = new RestingPointer(this.element);
    // Registered before the key listener, which stops the event.
    for (const event of ACTIVITY_EVENTS) window.addEventListener(event, this.noteActivity, { capture: true, passive: true });
    this.stopListening = listenToKeys(parentElement, (key, event) => this.#key(key, event), onKeyUp);
    this.adopting = window.setInterval(() => this.outbox.adoptOrphans(), ADOPT_MILLISECONDS);
    this.loading = this.#loadRecent();
  }

  /**
   * Store a decision: it is in the browser's storage when this returns, and sent soon.
   * @param {any} entry without uuid @param {{back?: () => void, again?: () => void}} [screen]
   */
  decide(entry, screen = {}) {
    const uuid = this.outbox.add(entry);
    if (this.items) this.items.answeredAt = performance.now();
    this.#startStep({ uuid, entry, ...screen });
    this.hints.noteUse("decide");
    return uuid;
  }

  /** Add a step without a decision, so that undo returns to it. @param {{back: () => void, again?: () => void}} screen */
  addViewStep(screen) {
    this.#startStep({ uuid: null, entry: null, ...screen });
  }

  undo() {
    this.hints.noteUse("undo");
    const step = this.history.pop();
    if (!step) {
      this.showMessage("Nothing to undo.");
      return;
    }
    this.#takeBack(step);
  }

  /** Undo one decision that is not the last. @param {{uuid: string, entry: any, back?: () => void, again?: () => void}} given */
  undoDecision(given) {
    const place = this.history.findIndex(({ uuid }) => uuid === given.uuid);
    this.#takeBack(place < 0 ? given : this.history.splice(place, 1)[0]);
  }

  /** Show the history of the image on screen. */
  showHistory() {
    const item = this.getHistoryImage();
    if (item) this.historyDialog.open(item);
    return Boolean(item);
  }

  /** @param {Step} step */
  #takeBack(step) {
    if (step.uuid) {
      const undoes = step.entry.action === "batch" ? `${step.uuid}:0` : step.uuid;
      this.outbox.add({ action: "undo", undoes, source: step.entry.source ?? "click" });
    }
    this.undone.push(step);
    if (step.back) step.back();
    else this.onUndo(step, "undone");
  }

  redo() {
    const step = this.undone.pop();
    if (!step) {
      this.showMessage("Nothing to redo.");
      return;
    }
    if (step.uuid) step.uuid = this.outbox.add(step.entry);
    this.#remember(step);
    if (step.again) step.again();
    else this.onUndo(step, "redone");
  }

  /**
   * Show a message until the next decision, or before that the next picture.
   * @param {string} text @param {boolean} [lasts] pictures leave it @param {HTMLElement[]} buttons behind it
   */
  showMessage(text, lasts = false, ...buttons) {
    this.words.replaceChildren(text ? capitalize(text) : "", ...buttons);
    this.lasts = lasts;
  }

  /** Show a message for a few seconds. @param {string} text */
  showBriefly(text) {
    this.showMessage(text);
    clearTimeout(this.briefTimer);
    this.briefTimer = window.setTimeout(() => this.clearMessage(text), BRIEF_MILLISECONDS);
  }

  /** This message goes, if it is the one on screen. @param {string} text */
  clearMessage(text) {
    if (this.words.textContent === capitalize(text)) this.showMessage("");
  }

  /** Another picture is on screen: the message goes, unless it lasts, and the status line is redrawn after its frame. */
  onPictureShown() {
    if (this.words.firstChild && !this.lasts) this.words.replaceChildren();
    this.drawStatusLine();
    this.hints.followSoon();
    this.restingPointer.rest();
  }

  /** The status line has changed; it is redrawn after the next picture, or soon. */
  onStatusChanged() {
    this.statusLine.drawSoon(this.outbox, this.items);
  }

  /** The image as the server has it, once all waiting decisions are saved. @param {number} id */
  async fetchItem(id) {
    await this.outbox.flush();
    const answer = await this.api.post("/api/items", { images: [id] }).catch(() => ({ items: [] }));
    return answer.items[0] ?? null;
  }

  /** Take the data of a rerun. @param {any} component @returns {boolean} whether the classes have changed */
  applyRerun({ data, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    const renewed = data.token !== this.api.token;
    const changed = this.applyClasses(data);
    this.#applyData({ ...data, classes: this.classes, relations: this.data.relations, class_version: this.data.class_version });
    this.api.token = data.token;
    this.outbox.annotator = data.annotator;
    if (renewed) {
      this.outbox.flush();
      this.items?.fetchMore();
    }
    return changed;
  }

  /** Take the classes of an answer, unless the page knows newer ones. @param {any} answer @returns {boolean} whether they are others */
  applyClasses({ classes, relations, class_version: version }) {
    if (version <= this.data.class_version) return false;
    this.#applyData({ ...this.data, classes, relations, class_version: version });
    this.items?.refetchUnseen();
    return true;
  }

  /** The server has classes of this version: unless the page knows it, its script runs again. @param {number} version */
  followClasses(version) {
    if (version <= this.data.class_version || version <= this.classesAsked) return;
    this.classesAsked = version;
    this.renew();
  }

  close() {
    this.stopListening();
    clearTimeout(this.briefTimer);
    this.pressGuard.close();
    this.restingPointer.close();
    for (const event of ACTIVITY_EVENTS) window.removeEventListener(event, this.noteActivity, { capture: true });
    clearInterval(this.adopting);
    this.statusLine.close();
    this.outbox.close();
    this.items?.close();
  }

  /** @param {any} data */
  #applyData(data) {
    rememberName(data.name_cookie, data.annotator);
    this.data = data;
    /** @type {Class[]} */
    this.classes = data.classes;
    this.relations = new Relations(data.relations);
    /** Also of classes that have been archived since. @type {Map<number, string>} */
    this.names = new Map([...(this.names ?? []), ...data.classes.map((class_) => [class_.id, class_.name])]);
    for (const class_ of this.relations.parents.size ? this.classes : []) class_.path = this.relations.path(class_.id, this.names);
  }

  /** A new step: what was said of the one before is over. @param {Step} step */
  #startStep(step) {
    if (this.words.firstChild) this.words.replaceChildren();
    this.undone = [];
    this.#remember(step);
  }

  /** @param {Step} step */
  #remember(step) {
    this.history.push(step);
    if (this.history.length > MAX_UNDO_STEPS) this.history.shift();
  }

  /** @param {string} key @param {KeyboardEvent} event */
  #key(key, event) {
    if (this.help.isOpen) return this.help.key(key);
    if (this.refusedDialog.isOpen) return this.refusedDialog.key(key);
    if (key === "images") return this.#findImage();
    if (this.historyDialog.isOpen) return this.historyDialog.key(key, event);
    if (this.imageFinder.isOpen) return this.imageFinder.key(key, event);
    const elsewhere = isTyping(event) || this.root.querySelector("dialog[open]");
    if (!elsewhere) {
      const commands = { undo: () => this.undo(), Backspace: () => this.undo(), redo: () => this.redo(), F1: () => this.help.open(), [OVERRULE_KEY]: () => overrule(this) };
      if (key === "?") commands["?"] = commands.F1;
      if (key === HISTORY_KEY && !event.repeat && this.showHistory()) return true;
      if (commands[key]) {
        if (!event.repeat || (key !== "F1" && key !== OVERRULE_KEY)) commands[key]();
        return true;
      }
    }
    return this.onKey(key, event);
  }

  /** Ctrl+P; in another dialog it does nothing, and never prints. */
  #findImage() {
    if (!this.imageFinder.dialog.isConnected) this.element.append(this.imageFinder.dialog);
    if (this.imageFinder.isOpen || !this.root.querySelector("dialog[open]")) this.imageFinder.open();
    return true;
  }

  /** After a reload: load the steps this person can still undo, and the images they can go back to. */
  async #loadRecent() {
    await this.outbox.flush();
    const answer = await this.api.post("/api/recent", {}).catch(() => ({ decisions: [], images: [] }));
    this.imageNames = new Map(answer.images);
    const known = new Set(this.history.map((step) => step.uuid));
    const older = answer.decisions.filter((entry) => !known.has(entry.uuid));
    this.history.unshift(...older.map(({ uuid, ...entry }) => ({ uuid, entry })));
    this.older = [...new Set(older.map((entry) => entry.image).filter((id) => id != null))];
  }
}
