// @ts-check
/**
 * Autopilot: the server chooses one action after the other, the one with the highest acquisition value for the person's
 * time. The person answers or skips it.
 */

import { GridBoard } from "../grid/grid_board.js";
import { SaveBar } from "../grid/save_bar.js";
import { CompletionPanel } from "./completion_panel.js";
import { KEY_HELP, PAGE_HINTS, isRelabel } from "./autopilot_texts.js";
import { TaskHeadline } from "./task_headline.js";
import { LabelMode } from "../shared/label_mode.js";
import { Page } from "../shared/page.js";
import { ImageTask, buildInitialMarks } from "./image_task.js";
import { buildOnwardLinks } from "../shared/placeholder.js";
import { el, formatCount, keyButton } from "../shared/dom.js";
import { chooseSaveKind } from "../shared/press_guard.js";
import { discardElements, listCells, restoreMarks } from "../grid/grid_tiles.js";
import { PRESENT } from "../shared/states.js";

const QUEUED_ACTIONS = 3; // actions: the one on screen and two ahead
const DEFAULT_TILES = 24; // tiles
const SAVING_TEXT = "Saving your last answers...";

/**
 * @typedef {{id: string, kind: "grid" | "audit" | "image" | "click" | "reading", source: string, line: string, decided: number, others: string[],
 *            run: number | null, grid: import("../grid/grid_tiles.js").Grid | null, item: any, preset: number[],
 *            reason: string, ruling_out: import("./rule_out_offer.js").Offer | null,
 *            scores: [number, number][], marks?: Map<number, number>, guesses?: Map<number, number>, known?: boolean,
 *            picture?: HTMLImageElement, loaded?: boolean, seen?: boolean, passedOn?: boolean}} Action
 *   decided: cells that it settles; scores: what the model says of each class of a single image; marks: what these are
 *   marked as; guesses: those of them that are the model's, and its probability, until the person says something; known: its cells were answered as present before, and are asked once more
 */

export default class AutopilotPage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "autopilot", keys: KEY_HELP, hints: PAGE_HINTS });
    this.build();
    this.begin({
      path: "/api/autopilot",
      lowWater: QUEUED_ACTIONS,
      targetCount: QUEUED_ACTIONS,
      steady: 1,
      savesFirst: true,
      request: () => ({ tiles: this.board.layout.steadyRoom, extra: this.extra }),
      cells: (/** @type {any} */ action) => listActionCells(action),
      waiting: () => this.waiting(),
      load: (/** @type {any} */ action) => this.load(action),
    });
  }

  build() {
    const { session } = this;
    /** What is on screen. @type {Action | null} */
    this.shown = null;
    /**
     * What is asked at the end; "beyond": what is open although the target is reached; "none": nothing, while the end is shown.
     * @type {"" | "relabel" | "audit" | "beyond" | "none"}
     */
    this.extra = "";
    this.completion = new CompletionPanel(session, (extra) => this.askFor(extra));
    this.mode = new LabelMode(session, { onChange: () => this.shown && this.headline.again(this.shown) });
    this.headline = new TaskHeadline(this.mode, (offer) => this.ruleOut(offer));
    this.saveBar = new SaveBar({ onStart: (start) => this.board.begin(start), onDecide: () => this.decide() });
    this.board = new GridBoard({
      session,
      usual: null,
      next: () => this.nextGrid(),
      onSize: () => this.refetchQueue(discardElements),
      onBelow: (count) => this.saveBar.showBelow(count),
      onMarks: (view) => {
        this.saveBar.showMarks(view, view.name);
        if (this.shown) this.headline.again(this.shown);
      },
    });
    session.toolbar.append(session.historyButton);
    this.imageTask = new ImageTask({
      session,
      onDecide: () => this.decide(),
      onSkip: () => this.skip(),
      onLabel: (id, state, stay) => this.label(id, state, stay),
      onWhole: () => this.decideEvent(),
      mode: this.mode,
    });
    this.bar = el("div", { class: "bar" }, this.saveBar.starts, this.board.sizeButtons.element, keyButton("Skip", ".", () => this.skip()), this.saveBar.button);
    session.element.replaceChildren(
      el("div", { class: "head" }, this.headline.element, this.headline.tally, session.toolbar),
      this.bar,
      this.board.host,
      this.imageTask.element,
      this.completion.element,
      el("div", { class: "under" }, session.words, session.statusLine.element),
      session.hints.element,
      session.help.dialog,
      this.board.tileZoom.dialog,
      this.board.eventImages.dialog,
    );
  }

  showClasses() {
    this.imageTask.setClasses();
  }

  getHistoryImage() {
    const { action } = this.imageTask;
    if (action?.kind === "reading") return null; // its history would tell what others have said
    return action ? action.item : this.board.historyImage;
  }

  showComments() {
    this.imageTask.name();
  }

  close() {
    this.board.close();
    this.imageTask.strip.close();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  onKey(key, event) {
    if (this.headline.ruleOutOffer.isOpen) return this.headline.ruleOutOffer.key(key);
    if (this.imageTask.action) return this.imageTask.key(key, event);
    if (this.board.tileZoom.isOpen || this.board.eventImages.isOpen) return this.board.key(key, event);
    const command = { Enter: () => this.decide(), ".": () => this.skip() }[key];
    if (!command) return this.board.key(key, event);
    if (!event.repeat) command();
    return true;
  }

  /** @param {string} key */
  onKeyUp(key) {
    this.board.onKeyUp(key);
  }

  /** @param {any} step @param {"undone" | "redone"} how */
  onForeignStep({ entry }, how) {
    this.announceUndo(how, this.describeDecision(entry));
    if (this.completion.isShown) this.askFor(""); // what this person opened again is no news to them
  }

  /** @param {number} id */
  imageName(id) {
    const { current, queue, earlierItems } = this.items;
    return [current, ...queue, ...earlierItems].find((action) => action?.item?.id === id)?.item.name ?? "";
  }

  /** Decide what is on screen, as it is marked. */
  decide() {
    const action = this.shown;
    if (!action) this.board.isLoaded();
    else if (action.kind === "click") this.done(action);
    else if (action.grid) this.decideGrid(action);
    else {
      const cells = this.imageTask.cells();
      if (this.imageTask.acceptsPress(chooseSaveKind(cells.length))) this.batch(action, cells);
    }
  }

  /** What is marked on the image also goes to the other images of its event. */
  decideEvent() {
    const action = this.shown;
    if (action?.kind !== "image" || !this.imageTask.acceptsPress("many")) return;
    const cells = this.imageTask.cells();
    const copies = this.imageTask.strip.listCopies(cells.map(([, id, state]) => [id, state]));
    if (!copies) return;
    const ids = new Set(copies.map(([image]) => image));
    this.batch(action, cells, copies);
    this.items.queue = this.items.queue.filter((/** @type {any} */ other) => other.passedOn || !ids.has(other.item?.id));
    this.session.showMessage(`Answered ${formatCount(ids.size, "other image")} of the event. Backspace undoes it.`, true);
  }

  /** @param {Action} action */
  decideGrid(action) {
    const saved = this.board.listSaved();
    if (!saved) return;
    for (const tile of action.grid.tiles) if (tile.broken) this.items.passed.add([tile.id, action.grid.class]);
    this.batch(action, saved.cells, saved.copies);
    this.board.keep(action, (old) => old === this.items.current || this.items.queue.includes(old));
  }

  /**
   * @param {Action} action @param {any[][]} cells [image, class, state, probability]
   * @param {import("../shared/event_strip.js").Copy[]} [copies] what other images of events get
   */
  batch(action, cells, copies = []) {
    const all = [...cells, ...copies.map((copy) => copy.slice(0, 3))];
    const positives = action.known ? 0 : all.filter(([, , state]) => state === PRESENT).length;
    const entry = cells.length && { action: "batch", source: action.source, cells, run: getRun(action), ...(copies.length ? { copies } : {}) };
    const { marks, guesses } = action;
    this.answer(action, entry, positives, true, () => {
      if (action.grid) restoreMarks(action.grid, all);
      else Object.assign(action, { marks, guesses });
    });
  }

  /**
   * One class of an image of which a single label is asked for.
   * @param {number} id @param {number | null} state null: nobody has said anything of it @param {boolean} stay
   */
  label(id, state, stay) {
    const action = this.shown;
    if (!action || !this.imageTask.acceptsPress()) return;
    const [before, after] = [action.marks, new Map(action.marks)];
    if (state == null) after.delete(id);
    else after.set(id, state);
    const about = { source: action.source, image: action.item.id, class: id };
    const given = { action: "label", state, score: new Map(action.scores).get(id), run: getRun(action) };
    const entry = { ...about, ...(state == null ? { action: "clear" } : given) };
    const known = buildInitialMarks(action).get(id) === PRESENT; // before anybody came here
    const positives = known ? 0 : Number(state === PRESENT) - Number(before.get(id) === PRESENT);
    this.answer(action, entry, positives, !stay, (way) => {
      action.marks = way === 1 ? after : before;
    });
  }

  /** Every class of the image that has no answer yet is absent. @param {Action} action */
  done(action) {
    if (!this.imageTask.acceptsPress(chooseSaveKind(this.imageTask.cells().length))) return;
    this.answer(action, { action: "done", source: "done", image: action.item.id }, 0, true, () => {});
  }

  /**
   * An answer, which undo takes back to where it was given.
   * @param {Action} action @param {any} entry null when it says nothing that is not known
   * @param {number} positives labels in it that say present
   * @param {boolean} goOn to the next action @param {(way: 1 | -1) => void} mark put the marks as they are after it, -1: before
   */
  answer(action, entry, positives, goOn, mark) {
    const milliseconds = this.items.viewMilliseconds;
    const { tallies } = this.headline;
    const answers = entry?.action === "done" ? this.imageTask.cells().length : countAnswers(entry);
    const become = (/** @type {1 | -1} */ way) => {
      mark(way);
      this.headline.count(tallies, { answers, positives, milliseconds }, way);
    };
    this.perform(entry && { ...entry, milliseconds }, {
      forward: () => {
        become(1);
        if (goOn) this.leave(action);
        else this.imageTask.marked();
      },
      back: () => {
        become(-1);
        this.bringBack(action);
      },
    });
  }

  /** Skip the action, and with it those of its kind and class that are queued. */
  skip() {
    const action = /** @type {Action | null} */ (/** @type {any} */ (this.items.current));
    if (!action || (action.loaded && action !== this.shown) || !this.session.pressGuard.allows()) return;
    const cells = listActionCells(action);
    this.session.hints.noteUse("skip");
    this.perform(null, {
      forward: () => {
        for (const cell of cells) this.items.passed.add(cell);
        this.items.queue = this.items.queue.filter((other) => other.passedOn || !isAlike(action, /** @type {any} */ (other)));
        this.leave(action);
      },
      back: () => {
        for (const cell of cells) this.items.passed.delete(cell);
        this.bringBack(action);
      },
    });
  }

  /** Treat a class as absent wherever nobody has answered it; undo and redo are about this as about an answer. @param {import("./rule_out_offer.js").Offer} offer */
  async ruleOut(offer) {
    const { session } = this;
    let batch = "";
    const rule = async (/** @type {boolean} */ first) => {
      await session.outbox.flush(); // what was answered just now may be an example
      const answer = await session.api.post("/api/rule_out", { class: offer.class });
      batch = answer.batch;
      if (first) session.addViewStep({ back: () => this.tell(undo()), again: () => this.tell(rule(false)) });
      const asks = (/** @type {any} */ action) => action?.ruling_out?.class === offer.class;
      this.items.queue = this.items.queue.filter((action) => action.passedOn || !asks(action));
      if (asks(this.items.current)) this.items.advance();
      this.items.fetchMore();
      session.showMessage(answer.line, true, el("button", { type: "button", class: "inline", onclick: () => session.undo() }, "Undo"));
    };
    const undo = async () => {
      const { cells } = await session.api.post("/api/rule_out/undo", { batch });
      if (this.completion.isShown) this.askFor(""); // what this person opened again is no news to them
      else this.items.fetchMore();
      session.showMessage(`Undid: '${offer.name}' is unanswered again on ${formatCount(cells, "image")}.`, true);
    };
    await this.tell(rule(true));
  }

  /** Say why something could not be done, if so. @param {Promise<void>} done */
  async tell(done) {
    await done.catch((error) => this.session.showMessage(`${error.message}`, true));
  }

  /** @param {Action} action it has been dealt with */
  leave(action) {
    if (/** @type {any} */ (this.items.current) === action) this.items.advance();
    else this.items.queue = this.items.queue.filter((other) => /** @type {any} */ (other) !== action);
  }

  /** What is asked unless the person wants something else: whoever went beyond the target stays there. @returns {"" | "beyond"} */
  get usualExtra() {
    return this.headline.beyond ? "beyond" : "";
  }

  /** Why nothing is on screen, "" while something may be on its way. */
  #describeEmpty() {
    const { news, passed, isNewsFinal } = this.items;
    if (!isNewsFinal) return news.ends ? SAVING_TEXT : "";
    return passed.size || (this.extra && this.extra !== "beyond") ? "" : news.empty;
  }

  /** @param {Action} action */
  bringBack(action) {
    if (this.extra === "none") this.extra = this.usualExtra;
    this.items.bringBack(action);
    this.imageTask.marked();
  }

  // What comes and goes

  /** @param {Action} action */
  load(action) {
    if (!action.grid) return this.imageTask.load(action);
    const { grid, kind } = action;
    grid.hidesPredictions = kind === "audit" || isRelabel(action);
    action.known ??= isRelabel(action) && grid.start === "yes"; // later the person may begin it the other way
    return this.board.load(grid, this.session.names.get(grid.class) ?? "");
  }

  /** The grid that comes next, if one does. @returns {import("../grid/grid_tiles.js").Grid | null} */
  nextGrid() {
    return /** @type {any} */ (this.items.queue.find((action) => !action.passedOn))?.grid ?? null;
  }

  /** Cells with an answer that the server may not know yet. @returns {[number, number][]} */
  waiting() {
    return [...this.session.outbox.waiting.values()].flatMap((entry) =>
      entry.cells ? [...entry.cells, ...(entry.copies ?? [])].map(([image, id]) => /** @type {[number, number]} */ ([image, id])) : entry.image == null ? [] : [[entry.image, 0]]);
  }

  onNews() {
    const { items } = this;
    const { complete, empty, ends } = items.news;
    // With these answers nothing is open any more: what was answered before is asked again only on request.
    if (ends && (!this.extra || this.extra === "beyond")) items.queue = items.queue.filter((action) => action.passedOn || !isOffered(/** @type {any} */ (action)));
    if (items.current) return;
    if (!items.isNewsFinal) this.paint();
    else if (items.passed.size && (empty || complete)) this.askFor(complete ? "none" : ""); // what was skipped comes again
    else if (complete) this.#complete(complete);
    else if (this.extra === "none") {
      this.completion.reopen();
      this.paint();
    } else if (this.extra && this.extra !== "beyond" && empty) this.askFor(""); // something was opened meanwhile
    else {
      this.completion.hide();
      this.paint();
    }
  }

  /** @param {import("./completion_panel.js").Complete} complete */
  #complete(complete) {
    this.extra = "none";
    this.completion.show(complete);
    this.paint();
  }

  /** @param {"" | "relabel" | "audit" | "beyond" | "none"} extra as in `extra` */
  askFor(extra) {
    if (extra === "beyond") this.headline.beginBeyond();
    this.extra = extra || this.usualExtra;
    this.items.passed.clear();
    this.items.fetchMore();
  }

  paint() {
    const current = /** @type {Action | null} */ (/** @type {any} */ (this.items.current));
    const action = current?.loaded ? current : null;
    if (current) this.completion.hide();
    const isComplete = this.completion.isShown;
    const words = isComplete ? this.completion.heading : current ? "" : this.#describeEmpty();
    if (action ? action === this.shown : !this.shown && this.wordsShown === words) return;
    this.shown = action;
    this.wordsShown = action ? null : words;
    const single = Boolean(action?.item);
    this.session.element.dataset.kind = action?.kind ?? "";
    this.session.element.classList.toggle("grid-page", !single && !words);
    this.bar.hidden = single || Boolean(words);
    this.session.historyButton.hidden = !single || action?.kind === "reading";
    this.board.host.hidden = single || isComplete;
    this.imageTask.element.hidden = !single;
    if (action) this.headline.show(action);
    else this.headline.showNone(isComplete || words === SAVING_TEXT ? words : words ? "" : "Loading...");
    if (single) this.imageTask.show(action);
    else this.imageTask.leave();
    if (action?.grid) {
      this.board.show(action.grid.view);
      this.saveBar.showMarks(action.grid.view, action.grid.view.name);
    } else {
      this.saveBar.showNone();
      if (words && !isComplete && words !== SAVING_TEXT) this.board.fill(el("div", { class: "nothing" }, el("p", { class: "empty" }, words), buildOnwardLinks(this.session)));
      else if (single || words) this.board.fill(el("div"));
      else this.board.wait(DEFAULT_TILES);
    }
    this.session.onPictureShown();
  }
}

/** What an action asks about: [image, class], class 0 for the whole image. @param {Action} action @returns {[number, number][]} */
function listActionCells({ grid, item }) {
  return grid ? listCells(grid) : [[item.id, 0]];
}

/** How many cells a decision answers. @param {any} entry null: none */
function countAnswers(entry) {
  return entry?.cells ? entry.cells.length + (entry.copies?.length ?? 0) : entry?.action === "label" ? 1 : 0;
}

/** The run whose probabilities are logged with the answer. @param {Action} action */
function getRun({ grid, run, scores }) {
  if (grid) return grid.run;
  return scores.length ? run : null;
}

/** Whether it settles nothing: once nothing is open, it is only offered. @param {Action} action */
function isOffered(action) {
  return action.kind === "audit" || isRelabel(action);
}

/** Of the same kind, and about the same class. @param {Action} action @param {Action} other */
function isAlike(action, other) {
  return action.kind === other.kind && action.grid?.class === other.grid?.class;
}
