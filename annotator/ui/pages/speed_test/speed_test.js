// @ts-check
/**
 * Speed test: short tasks of known sizes, one after the other, each timed from the moment it is on screen. They look as on
 * the Grid page and in Autopilot, but there is no outbox here: nothing that is marked can become a label. Only the time of
 * a task is sent, with how many presses it took. A task that was stopped, or during which the page was hidden, is asked
 * again from its beginning.
 */

import { rememberName } from "../shared/annotator_name.js";
import { Api, ApiError } from "../shared/api.js";
import { GridBoard } from "../grid/grid_board.js";
import { SaveBar } from "../grid/save_bar.js";
import { HelpDialog } from "../shared/help.js";
import { KEY_HELP, describeQuestion, describeTask } from "./speed_test_texts.js";
import { ImageTask } from "../autopilot/image_task.js";
import { Relations } from "../shared/relations.js";
import { PressGuard, chooseSaveKind } from "../shared/press_guard.js";
import { RestingPointer } from "../shared/resting_pointer.js";
import { SpeedTestSheet } from "./speed_test_sheet.js";
import { el, formatCount, kbd, keyButton, setText } from "../shared/dom.js";
import { isTyping, listenToKeys } from "../shared/keys.js";
import { discardElements } from "../grid/grid_tiles.js";
import { UNSURE } from "../shared/states.js";

const MAX_TIMED_MILLISECONDS = 600_000; // milliseconds; after a longer time the person was away, as the server counts
const IGNORED_KEYS = [".", " ", "F2", "Backspace", "undo", "redo", "images"]; // of other pages: nothing to skip, undo or open

/**
 * @typedef {{task: number, kind: "grid" | "image" | "click", classes: number[], grid?: any, item?: any, preset?: number[],
 *            scores?: [number, number][], marks?: Map<number, number>, picture?: HTMLImageElement, coming?: Promise<unknown>}} Task
 */

export default class SpeedTestPage {
  /** @param {any} component what Streamlit hands over: data, parentElement, setTriggerValue */
  constructor({ data, parentElement, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    this.data = data;
    rememberName(data.name_cookie, data.annotator);
    this.api = new Api(data.token);
    this.words = el("div", { class: "words", role: "status", "aria-live": "polite" });
    /** What the parts of other pages need of a session. @type {any} */
    this.session = {
      api: this.api,
      root: parentElement,
      data,
      classes: data.classes,
      hints: { noteUse: () => {} },
      relations: new Relations(undefined), // each press is counted as it was made: none implies another
      showMessage: (/** @type {string} */ text) => this.words.replaceChildren(text),
      clearMessage: () => this.words.replaceChildren(),
      showHistory: () => false,
      history: [],
      pressGuard: new PressGuard((text) => this.words.replaceChildren(text)),
    };
    this.element = /** @type {HTMLElement} */ (parentElement.querySelector(".root"));
    this.restingPointer = new RestingPointer(this.element);
    /** @type {any} the test as the server gave it */
    this.test = null;
    /** @type {Task[]} */
    this.left = [];
    /** @type {Task | null} on screen */
    this.shown = null;
    this.shownAt = 0;
    /** Times that are not saved yet. @type {any[]} */
    this.unsent = [];
    this.sending = false;
    /** Whether the last task has just been done. */
    this.finished = false;
    this.closed = false;
    this.#build();
    this.stopListening = listenToKeys(parentElement, (key, event) => this.#key(key, event), (key) => this.board.onKeyUp(key));
    this.hidden = () => document.hidden && this.shown && this.stop("The page was hidden: the task is asked again.");
    document.addEventListener("visibilitychange", this.hidden);
    this.#fetch();
  }

  /** Streamlit ran the page's script again: a fresh token. @param {any} component */
  update({ data, setTriggerValue }) {
    this.renew = () => setTriggerValue("expired", Date.now());
    const renewed = data.token !== this.api.token;
    this.api.token = data.token;
    this.session.data = this.data = data;
    if (renewed && this.unsent.length) this.#send();
    if (renewed && !this.test) this.#fetch();
  }

  unmount() {
    this.closed = true;
    this.stopListening();
    this.session.pressGuard.close();
    this.restingPointer.close();
    document.removeEventListener("visibilitychange", this.hidden);
    this.board.close();
  }

  #build() {
    this.saveBar = new SaveBar({ onStart: (start) => this.board.begin(start), onDecide: () => this.decide() });
    this.board = new GridBoard({
      session: this.session,
      usual: 24,
      next: () => null,
      onSize: () => {},
      onBelow: (count) => this.saveBar.showBelow(count),
      onFix: () => {},
      onMarks: (view) => this.saveBar.showMarks(view, view.name),
    });
    this.imageTask = new ImageTask({
      session: this.session,
      onDecide: () => this.decide(),
      onSkip: () => {},
      onLabel: (_, state) => state != null && this.#recordTask(1, 1),
    });
    this.sheet = new SpeedTestSheet({ onStart: () => this.start(), onAgain: () => this.#send() });
    this.help = new HelpDialog(KEY_HELP);
    this.line = el("h2", { class: "line", "aria-live": "polite" });
    this.task = el("p", { class: "task" });
    this.place = el("p", { class: "tally" });
    this.head = el("div", { class: "head" }, el("div", { class: "what" }, this.line, this.task), this.place,
      el("div", { class: "tools", role: "group", "aria-label": "Test" },
        el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.stop("") }, el("span", {}, "Stop"), kbd("Esc")),
        keyButton("Keys", "?", () => this.help.open())));
    this.bar = el("div", { class: "bar" }, this.saveBar.starts, this.saveBar.button);
    this.element.replaceChildren(this.head, this.bar, this.board.host, this.imageTask.element, this.sheet.element,
      el("div", { class: "under" }, this.words), this.help.dialog, this.board.tileZoom.dialog);
    this.#show(null);
  }

  /** Begin, or go on with the task that was stopped. */
  start() {
    if (this.shown || !this.left.length || !this.session.pressGuard.allows()) return;
    this.session.showMessage("");
    this.#next();
  }

  /** Leave the task on screen, whose time does not count. @param {string} words why, "" where the person wants it */
  stop(words) {
    const task = this.shown;
    if (!task) return;
    resetTask(task);
    this.#show(null);
    this.sheet.showStart(this.test, this.left.length);
    this.session.showMessage(words);
  }

  /** What is on screen is done. */
  decide() {
    const task = this.shown;
    if (task?.grid && this.board.listSaved()) {
      const tiles = task.grid.tiles.filter((/** @type {any} */ tile) => !tile.broken);
      const begun = task.grid.start === "yes" ? 1 : -1;
      if (tiles.length) this.#recordTask(tiles.length, countPresses(tiles.map((/** @type {any} */ tile) => tile.mark), begun));
    } else if (task?.item && this.imageTask.acceptsPress(chooseSaveKind(task.classes.length))) {
      this.#recordTask(task.classes.length, countPresses([...(task.marks ?? new Map()).values()], -1));
    }
  }

  /** @param {number} cells @param {number} changes presses besides the one that ended it */
  #recordTask(cells, changes) {
    const task = this.shown;
    if (!task || (task.item && !this.imageTask.acceptsPress())) return;
    const milliseconds = Math.round(performance.now() - this.shownAt);
    if (milliseconds > MAX_TIMED_MILLISECONDS) {
      this.stop("That took more than ten minutes: the task is asked again.");
      return;
    }
    this.unsent.push({ round: this.test.round, task: task.task, kind: task.kind, cells, changes, milliseconds });
    this.left.shift();
    this.#send();
    this.#next();
  }

  async #next() {
    const [task, after] = this.left;
    if (!task) {
      this.#show(null);
      this.sheet.showWait();
      await this.#send();
      return;
    }
    if (this.shown) this.board.wait(24);
    await this.#load(task);
    if (this.closed || this.left[0] !== task) return;
    if (task.item?.broken) {
      this.left.shift(); // it cannot be shown, and is not timed
      await this.#next();
      return;
    }
    this.#show(task);
    if (after) this.#load(after);
  }

  /** @param {Task} task */
  #load(task) {
    const name = this.data.classes.find((/** @type {any} */ class_) => class_.id === task.grid?.class)?.name ?? "";
    if (task.grid) task.grid.hidesPredictions = true;
    task.coming ??= task.grid ? this.board.load(task.grid, name) : this.imageTask.load(task);
    return task.coming;
  }

  /** Put a task on screen; its time begins. @param {Task | null} task null: what stands on the sheet */
  #show(task) {
    this.imageTask.leave();
    this.shown = task;
    this.session.pressGuard.onItemShown();
    this.restingPointer.rest();
    const single = Boolean(task?.item);
    this.element.dataset.kind = task?.kind ?? "";
    this.element.classList.toggle("grid-page", Boolean(task?.grid));
    this.head.hidden = !task;
    this.bar.hidden = this.board.host.hidden = !task?.grid;
    this.imageTask.element.hidden = !single;
    this.sheet.element.hidden = Boolean(task);
    if (!task) return;
    const classes = this.data.classes.filter((/** @type {any} */ class_) => task.classes.includes(class_.id));
    setText(this.line, describeQuestion(task, classes));
    setText(this.task, describeTask(task));
    setText(this.place, `${this.test.of - this.left.length + 1} of ${this.test.of}`);
    if (single) {
      this.session.classes = classes;
      this.imageTask.setClasses();
      this.imageTask.show(task);
    } else {
      this.board.show(task.grid.view);
      this.saveBar.showMarks(task.grid.view, task.grid.view.name);
    }
    this.shownAt = performance.now();
  }

  /** The test as the server has it, and what is known of this person's times. */
  async #fetch() {
    try {
      this.test = await this.api.post("/api/speed_test", {});
    } catch (error) {
      this.#onFailure(error, "The test could not be loaded");
      return;
    }
    if (this.closed) return;
    this.left = this.test.tasks;
    if (this.finished) this.sheet.showResult(this.test);
    else this.sheet.showStart(this.test, this.left.length);
    this.finished = false;
  }

  /** Save the times that wait, one by one; with the last of the test they become an estimate. */
  async #send() {
    if (this.sending) return;
    this.sending = true;
    try {
      while (this.unsent.length) {
        await this.api.post("/api/speed_test/time", this.unsent[0]);
        this.unsent.shift();
      }
    } catch (error) {
      this.#onFailure(error, `${formatCount(this.unsent.length, "time")} could not be saved`);
      if (error instanceof ApiError && [400, 409].includes(error.status)) this.unsent.shift(); // never will be
      if (!this.left.length) this.sheet.showUnsent(this.unsent.length);
    }
    this.sending = false;
    if (this.unsent.length || this.left.length || this.shown) return;
    this.finished = true;
    await this.#fetch();
  }

  /** @param {any} error @param {string} what */
  #onFailure(error, what) {
    if (error instanceof ApiError && error.status === 401) this.renew();
    this.session.showMessage(`${what}: ${error.message}.`);
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  #key(key, event) {
    if (this.help.isOpen) return this.help.key(key);
    if (key === "?" || key === "F1") {
      this.help.open();
      return true;
    }
    if (!this.shown) {
      if (key !== "Enter" || event.repeat || !this.sheet.begins) return false;
      this.start();
      return true;
    }
    if (this.board.tileZoom.isOpen) return this.board.key(key, event);
    if (this.shown.item && isTyping(event)) return this.imageTask.key(key, event);
    if (key === "Escape") {
      this.stop("");
      return true;
    }
    if (IGNORED_KEYS.includes(key) && !(key === " " && this.shown.grid)) return key !== "images";
    if (this.shown.item) return this.imageTask.key(key, event);
    if (key === "Enter") {
      if (!event.repeat) this.decide();
      return true;
    }
    return this.board.key(key, event);
  }
}

/** How many presses these marks took; unsure takes two. @param {number[]} marks @param {number} begun what they were */
function countPresses(marks, begun) {
  return marks.reduce((sum, mark) => sum + (mark === begun ? 0 : mark === UNSURE ? 2 : 1), 0);
}

/** The task begins anew. @param {Task} task */
function resetTask(task) {
  task.marks = task.coming = undefined;
  if (!task.grid) return;
  discardElements(task.grid);
  task.grid.start = "no";
  task.grid.at = 0;
  for (const tile of task.grid.tiles) tile.mark = tile.touched = undefined;
}
