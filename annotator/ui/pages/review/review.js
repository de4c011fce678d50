// @ts-check
/**
 * Review: one image, the labels the model thinks are missing, each with where it looked. Accept, reject or unsure by
 * one key; after the last suggestion the next image is there at once. A key applies to the selected suggestion of the
 * image on screen; while there is no picture it is ignored.
 */

import { ClassAdder } from "./class_adder.js";
import { askAboutContradiction } from "../shared/contradictions.js";
import { formatPercent } from "./suggestion_chips.js";
import { FIX_KEY, openInAnnotate } from "../shared/fix_link.js";
import { ReviewFilter } from "./review_filter.js";
import { KEY_HELP, PAGE_HINTS } from "./review_texts.js";
import { Page } from "../shared/page.js";
import { applyAnswers } from "./image_labels.js";
import { ReviewScreen, findFirstOpen, listOpenAbove } from "./review_screen.js";
import { LOOKING_TEXT, performForEvent } from "../shared/event_strip.js";
import { isTyping } from "../shared/keys.js";
import { chooseSaveKind } from "../shared/press_guard.js";
import { WordDetector } from "../shared/word_detector.js";

const NEWEST_IMAGE_TEXT = "This is the newest image. Press Space to go on.";
const SLIDER_KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];

export default class ReviewPage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "review", keys: KEY_HELP, hints: PAGE_HINTS });
    this.build();
    this.begin({ lowWater: 24, targetCount: 32, request: () => ({ mode: "review", filter: this.filter.request }) });
  }

  build() {
    const { project, threshold, classes, annotators, may_review: maySettle } = this.session.data;
    this.filter = new ReviewFilter({ project, threshold, classes, annotators, maySettle, onChange: () => this.items.restart() });
    this.adder = new ClassAdder({
      classes: () => this.session.classes,
      states: () => new Map(this.labels().map((label) => [label.class, label.state])),
      onAdd: (class_) => this.add(class_.id),
    });
    this.screen = new ReviewScreen(this.session, this.filter, {
      answer: (state, at) => this.answer(state, at),
      acceptAll: () => this.acceptAll(),
      done: () => this.done(),
      pass: () => this.pass(),
      earlier: () => this.showEarlier(),
      later: () => this.showLater(NEWEST_IMAGE_TEXT),
      add: () => this.openAdder(),
      fix: () => this.fix(),
      whole: () => this.answerEvent(),
    });
    this.strip = this.screen.strip;
    this.wordDetector = new WordDetector({ session: this.session, onWord: (typed) => this.items.isReady && this.adder.open(typed) });
    this.session.element.append(this.adder.dialog);
  }

  paint() {
    this.screen.show();
  }

  onNews() {
    if (this.items.current) this.screen.rest();
    else this.paint();
  }

  showClasses() {
    this.filter.setClasses(this.session.classes);
    this.screen.rename();
  }

  getHistoryImage() {
    return this.items.current;
  }

  showComments() {
    this.screen.rest();
  }

  close() {
    this.screen.close();
  }

  /** @param {string} key @param {KeyboardEvent} event */
  onKey(key, event) {
    if (this.adder.isOpen) return this.adder.key(key, event);
    if (isTyping(event)) return this.filter.key(key, event);
    if (isOnSlider(event) && SLIDER_KEYS.includes(key)) return false;
    if (this.strip.key(key, event)) return true;
    return this.wordDetector.press(key, event, () => this.act(key, event));
  }

  /** A key that is about the image. @param {string} key @param {KeyboardEvent} event */
  act(key, event) {
    if (this.screen.stage.key(key, event)) return true;
    const { heat } = this.screen;
    const moves = {
      ArrowDown: () => this.step(1),
      ArrowUp: () => this.step(-1),
      "-": () => heat.step(-1),
      "[": () => heat.step(-1),
      "+": () => heat.step(1),
      "=": () => heat.step(1),
      "]": () => heat.step(1),
    };
    const commands = {
      y: () => this.answer(1, undefined, event.shiftKey),
      n: () => this.answer(-1, undefined, event.shiftKey),
      u: () => this.answer(0, undefined, event.shiftKey),
      a: () => this.acceptAll(),
      h: () => heat.toggle(),
      m: () => this.screen.ask(),
      Enter: () => this.done(),
      " ": () => this.pass(),
      ".": () => this.pass(),
      ArrowLeft: () => this.showEarlier(),
      ArrowRight: () => this.showLater(NEWEST_IMAGE_TEXT),
      f: () => this.filter.focus(),
      "/": () => this.openAdder(),
      find: () => this.openAdder(),
      [FIX_KEY]: () => this.fix(),
    };
    if (moves[key]) moves[key]();
    else if (/^[1-9]$/.test(key)) this.screen.select(Number(key) - 1);
    else if (!commands[key]) return false;
    else if (!event.repeat) commands[key](); // a key held down is one answer
    return true;
  }

  /** @param {import("../shared/press_guard.js").Kind} [kind] */
  getPressedItem(kind) {
    if (!this.strip.isLooking) return super.getPressedItem(kind);
    this.session.showMessage(LOOKING_TEXT);
    return null;
  }

  /** @param {number} state @param {number} [at] which suggestion; the selected one @param {boolean} [whole] also of the event */
  answer(state, at = this.screen.at, whole = false) {
    const item = this.getPressedItem(whole && this.session.data.events ? "many" : "answer");
    const chip = item?.suggestions[at];
    if (!chip) return;
    // The run was trained on the answer of a cell that was answered before: its probability is no test of the model.
    const shown = chip.known == null ? { run: chip.run_id, score: chip.probability } : {};
    const entry = {
      action: "label", source: getSource(chip), image: item.id, class: chip.class_id, state, ...shown,
      milliseconds: this.items.viewMilliseconds,
    };
    const copies = whole && this.session.data.events ? this.strip.listCopies([[chip.class_id, state]]) : [];
    if (!copies) return;
    const { score = null, run, ...plain } = /** @type {any} */ (entry);
    const cells = [[item.id, chip.class_id, state, score]];
    const batch = { ...plain, action: "batch", image: undefined, class: undefined, state: undefined, cells, copies, run };
    this.decide(item, copies.length ? batch : entry, [at], state);
    this.askAbout(item, chip.class_id);
  }

  /** An answer that contradicts others is asked about at once, also when the next image is there. @param {any} item @param {number} id of the class */
  askAbout(item, id) {
    const labels = applyAnswers(item, this.session.data.annotator);
    askAboutContradiction(this.session, id, new Map(labels.map((label) => [label.class, label.state])), (other) => this.clear(item, other));
  }

  /** Nobody has said anything of this class on this image. @param {any} item @param {number} id */
  clear(item, id) {
    const places = item.suggestions.flatMap((/** @type {any} */ chip, /** @type {number} */ at) => (chip.class_id === id ? [at] : []));
    const [before, given] = [item.labels, places.map((/** @type {number} */ at) => item.suggestions[at].given ?? null)];
    const become = (/** @type {any[]} */ labels, /** @type {(number | null)[]} */ answers) => {
      item.labels = labels;
      this.give(item, places, answers);
      if (this.items.current === item) this.screen.rest();
    };
    this.perform({ action: "clear", source: "click", image: item.id, class: id, milliseconds: this.items.viewMilliseconds }, {
      forward: () => become(before.filter((/** @type {any} */ label) => label.class !== id), places.map(() => null)),
      back: () => become(before, given),
    });
  }

  /** What this person has answered here is said of the other images of the event, too: one step. */
  answerEvent() {
    const item = this.getPressedItem("many");
    if (!item) return;
    const copies = this.strip.listLabelCopies(this.labels());
    if (copies) this.decide(item, { action: "batch", source: "event", cells: [], copies, milliseconds: this.items.viewMilliseconds }, [], 0);
  }

  /** Everything open at or above the line is present: one decision. */
  acceptAll() {
    this.session.hints.noteUse("above");
    const places = this.items.current ? listOpenAbove(this.items.current, this.screen.threshold.at) : [];
    const item = this.getPressedItem(chooseSaveKind(places.length));
    if (!item) return;
    if (!places.length) {
      this.session.showMessage(`No suggestion left above the threshold (${formatPercent(this.screen.threshold.at)}).`);
      return;
    }
    const chips = places.map((at) => item.suggestions[at]);
    const entry = {
      action: "batch", source: getSource(chips[0]), run: chips[0].run_id, milliseconds: this.items.viewMilliseconds,
      cells: chips.map((chip) => [item.id, chip.class_id, 1, chip.known == null ? chip.probability : null]),
    };
    this.decide(item, entry, places, 1);
  }

  /**
   * One decision about some suggestions of an image, with its way back and again.
   * @param {any} item @param {any} entry @param {number[]} places @param {number} state
   */
  decide(item, entry, places, state) {
    const chips = places.map((at) => item.suggestions[at]);
    const before = chips.map((chip) => chip.given ?? null);
    const open = chips.filter((chip) => chip.given == null && chip.known == null);
    const perform = (/** @type {any} */ given, /** @type {any} */ screen) => (given.copies ? performForEvent(this, given, screen) : this.perform(given, screen));
    perform(entry, {
      answered: open.length + (entry.copies?.length ?? 0),
      forward: () => {
        this.returnTo(item);
        this.give(item, places, places.map(() => state));
        this.goOn(item, places);
      },
      back: () => {
        this.give(item, places, before);
        this.items.bringBack(item);
        if (places.length) this.screen.select(places[0]);
        this.screen.rest();
      },
    });
  }

  /** @param {any} item @param {number[]} places @param {(number | null)[]} states */
  give(item, places, states) {
    places.forEach((at, index) => {
      item.suggestions[at].given = states[index];
    });
    this.screen.mark(item, places);
  }

  /** To the next open suggestion, or image. @param {any} item @param {number[]} places what was answered */
  goOn(item, places) {
    const open = findFirstOpen(item);
    if (!places.length && open >= 0) return; // answers to the rest of the event: this image goes on
    if (open < 0) {
      this.leave();
      return;
    }
    const next = item.suggestions.findIndex((chip, at) => at > places[places.length - 1] && chip.given == null);
    this.screen.select(next < 0 ? open : next, false);
    this.screen.rest();
  }

  openAdder() {
    if (this.getPressedItem()) this.adder.open();
  }

  /** What is known of the image on screen, with what was answered here. @returns {any[]} */
  labels() {
    const item = this.items.current;
    return item ? applyAnswers(item, this.session.data.annotator) : [];
  }

  /** A class that is on the image as well; its suggestion, if there is one, is answered by that. @param {number} id */
  add(id) {
    const item = this.getPressedItem();
    if (!item) return;
    if (this.labels().some((label) => label.class === id && label.state === 1)) {
      this.session.showMessage(`${this.screen.className(id)} is labeled already.`);
      return;
    }
    const [before, selected] = [item.labels, this.screen.at];
    const places = item.suggestions.flatMap((/** @type {any} */ chip, /** @type {number} */ at) => (chip.class_id === id ? [at] : []));
    const given = places.map((/** @type {number} */ at) => item.suggestions[at].given ?? null);
    const label = { class: id, state: 1, source: "click", by: this.session.data.annotator };
    const labels = [...before.filter((/** @type {any} */ other) => other.class !== id), label];
    const become = (/** @type {any[]} */ next, /** @type {(number | null)[]} */ answers) => {
      this.returnTo(item);
      item.labels = next;
      this.give(item, places, answers);
      this.screen.select(selected, false);
      this.screen.rest();
    };
    this.perform({ action: "label", source: "click", image: item.id, class: id, state: 1, milliseconds: this.items.viewMilliseconds }, {
      forward: () => become(labels, places.map(() => 1)),
      back: () => become(before, given),
    });
    this.session.showMessage(`${this.screen.className(id)} added.`);
    this.askAbout(item, id);
  }

  fix() {
    if (this.items.current) openInAnnotate(this.items.current.id);
  }

  /** Nothing else here: what is not answered is absent. */
  done() {
    const item = this.getPressedItem(chooseSaveKind(this.session.classes.length - this.labels().length));
    if (!item) return;
    this.perform({ action: "done", source: "done", image: item.id, milliseconds: this.items.viewMilliseconds }, {
      forward: () => {
        this.returnTo(item);
        item.complete = true;
        this.leave();
      },
      back: () => {
        item.complete = false;
        this.items.bringBack(item);
        this.screen.rest();
      },
    });
  }

  /** On to the next image, this one's open suggestions left open. */
  pass() {
    /** @type {any} */
    const item = this.items.current;
    if (!item) return;
    this.perform(null, {
      forward: () => {
        this.returnTo(item);
        this.leave();
      },
      back: () => this.items.bringBack(item),
    });
  }

  leave() {
    this.items.passed.add(this.items.current.id);
    this.items.advance();
  }

  /** @param {1 | -1} way */
  step(way) {
    const count = this.items.current?.suggestions.length ?? 0;
    if (count) this.screen.select((this.screen.at + way + count) % count);
  }

  /**
   * The answers of a step that is not held any more are shown on the image as the server has it.
   * @param {import("../shared/session.js").Step} step @param {"undone" | "redone"} how
   */
  async onForeignStep(step, how) {
    const { entry } = step;
    this.strip.renew();
    const cells = entry.cells ?? (entry.class == null ? [] : [[entry.image, entry.class, entry.state, entry.score]]);
    const id = entry.image ?? cells[0]?.[0];
    if (entry.copies || cells.some(([image]) => image !== id)) {
      this.announceUndo(how, this.describeDecision(entry));
      return;
    }
    const item = /** @type {any} */ (this.items.find(id)) ?? (await this.session.fetchItem(id));
    if (!item) {
      this.announceUndo(how, this.describeDecision(entry), step);
      return;
    }
    for (const [image_id, class_id, state, score] of cells) {
      let chip = item.suggestions.find((other) => other.class_id === class_id);
      if (!chip && entry.run != null) {
        chip = { image_id, class_id, probability: score ?? 0, run_id: entry.run, known: null, said: [] };
        item.suggestions.push(chip);
      }
      if (chip) chip.given = how === "undone" ? null : state;
    }
    this.screen.lists.delete(item); // it may have become longer
    if (this.items.current === item) this.screen.show();
    else this.items.bringBack(item);
    this.announceUndo(how, this.describeDecision(entry), step);
  }
}

/** The stored source of the answer: a suggestion, a likely mistake, or an annotator disagreement. @param {any} chip */
function getSource({ known, said }) {
  if (said?.length) return "settlement";
  return known == null ? "suggestion" : "relabel";
}

/** @param {KeyboardEvent} event */
function isOnSlider(event) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  return target instanceof HTMLElement && target.matches("input[type=range]");
}
