// @ts-check
/**
 * One image and its classes: for an action that asks about all of them at once, and for one that asks for a single label.
 * The marks are stored in the action itself, so that undo brings it back as it was.
 */

import { ClassList, decodeLikelihoods } from "../annotate/class_list.js";
import { ClassFinder } from "../annotate/class_finder.js";
import { STATE_WORDS, describeModels, el, kbd, keyButton, onDraw, setText, showCaption } from "../shared/dom.js";
import { ImageStage } from "../shared/image_stage.js";
import { EventStrip, LOOKING_TEXT } from "../shared/event_strip.js";
import { WordDetector } from "../shared/word_detector.js";
import { formatCommentCount } from "../shared/history.js";
import { createPicture, loadPicture } from "../shared/pictures.js";
import { describeFailure } from "../shared/placeholder.js";
import { isTyping } from "../shared/keys.js";
import { LABEL_MODE_KEY } from "../shared/label_mode.js";
import { FIX_KEY, buildFixButton, openInAnnotate } from "../shared/fix_link.js";
import { ABSENT, PRESENT, UNSURE } from "../shared/states.js";

/** @typedef {import("../shared/session.js").Class} Class */

export class ImageTask {
  /**
   * @param {{session: import("../shared/session.js").Session, onDecide: () => void, onSkip: () => void,
   *          onLabel: (id: number, state: number | null, stay: boolean) => void, onWhole?: () => void,
   *          mode?: import("../shared/label_mode.js").LabelMode}} options
   *   onDecide: everything, as it is marked; onWhole: and for the other images of the event; onLabel: one class, where a single label is asked for; null takes it back
   *   mode: whether that label completes the task; without it, it does
   */
  constructor({ session, onDecide, onSkip, onLabel, onWhole = () => {}, mode }) {
    this.session = session;
    this.mode = mode;
    this.onDecide = onDecide;
    this.onSkip = onSkip;
    this.onLabel = onLabel;
    /** @type {any} what is on screen */
    this.action = null;
    /** Whether it has been drawn: keys are ignored until the person can have seen the image. */
    this.seen = false;
    this.unsure = false;
    this.stage = new ImageStage();
    this.strip = new EventStrip(session, { stage: this.stage, onWhole });
    this.caption = el("div", { class: "caption" });
    this.list = new ClassList((class_, stay, alt) => this.choose(class_, stay, alt));
    this.finder = new ClassFinder({
      likely: () => decodeLikelihoods(this.action?.item, session),
      states: () => this.list.marked,
      meaning: (class_) => this.#meaning(class_),
      onNothing: () => session.showMessage(`Nothing was chosen. Enter means "${this.decideWords.textContent}" again.`),
      onTake: (class_, stay) => this.give(class_, stay, this.unsure ? UNSURE : PRESENT),
      onPoint: () => {},
    });
    this.wordDetector = new WordDetector({ session, onWord: (typed) => this.finder.focus(typed) });
    this.unsureButton = keyButton("Unsure", "-", () => this.toggleUnsure(), { "aria-pressed": "false" });
    this.fixButton = buildFixButton(() => this.fix());
    this.decideWords = el("span", {});
    this.sum = el("span", { class: "sum" });
    this.decideButton = el("button", { type: "button", class: "main wide", "aria-keyshortcuts": "Enter", onclick: () => onDecide() },
      this.decideWords, this.sum, kbd("Enter"));
    this.element = el("div", { class: "work", hidden: true },
      el("div", { class: "left" }, this.stage.element, this.strip.element, this.caption),
      el("div", { class: "side" }, el("div", { class: "picking" }, this.finder.element, ...(mode ? [mode.element, mode.note] : [])), this.list.likelyPart, this.list.list,
        el("div", { class: "tools answers", role: "group", "aria-label": "Answers" },
          this.decideButton, this.unsureButton, keyButton("Skip", ".", onSkip), this.fixButton)));
    this.setClasses();
  }

  setClasses() {
    this.list.setClasses(this.session.classes, this.session.relations);
    this.finder.setClasses(this.session.classes);
    if (this.action) this.#mark();
  }

  /** Fetch and decode the picture of an action. @param {any} action */
  async load(action) {
    const { item } = action;
    action.picture = createPicture(item.id);
    action.picture.alt = item.name;
    item.broken = await loadPicture(action.picture, this.session.api.url(`/api/image/${item.id}`));
  }

  /** @param {any} action whose picture is loaded; keys apply to it from the frame in which it is drawn */
  show(action) {
    const { item, picture } = action;
    this.action = action;
    this.fixButton.hidden = action.kind === "reading";
    this.mode?.setFixed(action.kind !== "click");
    this.seen = false;
    action.marks ??= buildInitialMarks(action);
    action.guesses ??= listGuesses(action);
    if (item.broken) this.stage.showText(describeFailure(item.name, item.broken));
    else this.stage.show({ ...item, picture });
    this.name();
    if (this.unsure) this.toggleUnsure();
    this.finder.close();
    this.#mark();
    this.list.forgetLikely();
    this.list.showLikely(decodeLikelihoods(item, this.session));
    const inEvent = action.kind === "image" && !item.broken;
    this.strip.element.hidden = !inEvent || !this.session.data.events;
    this.strip.show(inEvent ? item : null);
    onDraw(() => {
      if (this.action === action) this.seen = true;
    });
  }

  /** The image's name, and how many comments it has. */
  name() {
    const item = this.action?.item;
    if (!item) return;
    const models = Object.entries(this.#models()).map(([name, said]) => `${name}: ${describeModels(said)}`);
    showCaption(this.caption, item.name, [formatCommentCount(item), ...models]);
  }

  /** What models from elsewhere say of the classes that start as present: name of the class -> name and score of each. */
  #models() {
    /** @type {{[name: string]: [string, number][]}} */
    const said = {};
    for (const [id, model, score] of this.action.models ?? []) {
      const name = this.session.classes.find((/** @type {Class} */ class_) => class_.id === id)?.name;
      if (name) (said[name] ??= []).push([model, score]);
    }
    return said;
  }

  /** Something else is on screen. */
  leave() {
    this.action = null;
    this.seen = false;
    this.strip.show(null);
  }

  /** Whether a press decides about the image. @param {import("../shared/press_guard.js").Kind} [kind] */
  acceptsPress(kind) {
    if (this.strip.isLooking) {
      this.session.showMessage(LOOKING_TEXT);
      return false;
    }
    return Boolean(this.action && !this.action.item.broken) && this.session.pressGuard.allows(kind, this.seen);
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    if (event.composedPath()[0] === this.finder.field && key !== "find") return this.finder.key(event);
    if (isTyping(event) && key !== "find") return false;
    if (this.strip.key(key, event)) return true;
    return this.wordDetector.press(key, event, () => this.act(key, event), () => this.#keepMarks());
  }

  /** A key that is about the image. @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  act(key, event) {
    const alt = key.startsWith("Alt+");
    const class_ = this.list.byKey.get(alt ? key.slice(4) : key);
    const command = {
      Enter: () => this.onDecide(),
      ".": () => this.onSkip(),
      " ": () => this.onSkip(),
      "-": () => this.toggleUnsure(),
      [LABEL_MODE_KEY]: () => this.mode?.toggle(),
      "/": () => this.finder.focus(),
      find: () => this.finder.focus(),
      [FIX_KEY]: () => this.fix(),
    }[key];
    if (class_) event.repeat || this.choose(class_, event.shiftKey, alt);
    else if (this.stage.key(key, event)) return true;
    else if (command) event.repeat || command();
    else return false;
    return true;
  }

  /**
   * A class was pressed; with Alt it is absent. Where a single label is asked for, the same again takes it back.
   * @param {Class} class_ @param {boolean} stay @param {boolean} alt
   */
  choose(class_, stay, alt) {
    const state = alt ? ABSENT : this.unsure ? UNSURE : PRESENT;
    const again = this.action?.kind === "click" && this.action.marks.get(class_.id) === state && this.session.pressGuard.isSettled;
    if (!again) return this.give(class_, stay, state);
    if (!this.acceptsPress()) return;
    if (this.unsure) this.toggleUnsure();
    this.onLabel(class_.id, null, true);
  }

  /** A class was pressed, or found by its name. @param {Class} class_ @param {boolean} stay @param {number} state */
  give(class_, stay, state) {
    if (!this.acceptsPress()) return;
    const { kind, marks, guesses } = this.action;
    if (this.unsure) this.toggleUnsure();
    if (kind === "click") {
      this.onLabel(class_.id, state, stay || state !== PRESENT || this.mode?.goesOn === false);
      return;
    }
    const other = state === PRESENT && marks.get(class_.id) === PRESENT;
    const marked = new Map(marks).set(class_.id, other ? ABSENT : state);
    // What the model guessed gives way to what the person says.
    const against = this.session.relations.contradicted(marked).filter((id) => id !== class_.id && guesses.has(id));
    for (const id of against) marked.delete(id);
    this.action.marks = marked;
    this.action.guesses = new Map([...guesses].filter(([id]) => id !== class_.id && !against.includes(id)));
    this.#mark();
  }

  /** Open the image in Annotate, with what has been said of it: never while it is to be answered blind. */
  fix() {
    if (this.action && this.action.kind !== "reading") openInAnnotate(this.action.item.id);
  }

  /** What taking a class in the finder does. @param {Class} class_ */
  #meaning({ id, name }) {
    if (this.unsure) return `marks ${name} unsure`;
    if (this.action?.kind === "click") return `labels ${name}`;
    return `marks ${name} ${STATE_WORDS[this.action?.marks.get(id) === PRESENT ? ABSENT : PRESENT]}`;
  }

  toggleUnsure() {
    this.unsure = !this.unsure;
    this.unsureButton.setAttribute("aria-pressed", String(this.unsure));
    this.list.unsure(this.unsure);
  }

  /** What the classes are marked as has changed. */
  marked() {
    if (this.action) this.#mark();
  }

  /**
   * What Enter would save where all classes are asked about: a row [image, class, state, probability] for each that has
   * no answer yet, or gets another one.
   */
  cells() {
    const { item, marks } = this.action;
    const known = new Map(item.labels.map((/** @type {any} */ label) => [label.class, label.state]));
    const scores = new Map(this.action.scores);
    const { classes: spared } = this.session.relations.spared(marks);
    return this.session.classes
      .filter(({ id }) => !spared.has(id))
      .map(({ id }) => [item.id, id, marks.get(id) ?? ABSENT, scores.get(id) ?? null])
      .filter(([, id, state]) => known.get(id) !== state);
  }

  /** How to put the marks back as they are now. */
  #keepMarks() {
    const { action } = this;
    const marks = action?.marks;
    return () => {
      if (action) action.marks = marks;
      this.marked();
    };
  }

  #mark() {
    const { kind, marks, guesses } = this.action;
    const implied = this.session.relations.implied(marks);
    this.list.mark(marks, guesses, implied);
    const count = (/** @type {number} */ state) => [...marks.values()].filter((mark) => mark === state).length;
    const [yes, unsure] = [count(PRESENT), count(UNSURE)];
    const no = this.session.classes.length - yes - unsure - [...implied.values()].filter((mark) => mark === PRESENT).length;
    const single = kind === "click";
    setText(this.decideWords, single ? "Nothing else here" : "Save all");
    const said = this.session.relations.isEmpty(marks, implied)
      ? "nothing here: empty"
      : guesses.size
      ? `${guesses.size} guessed · ${marks.size - guesses.size} answered · ${this.session.classes.length - marks.size} absent`
      : `${yes} ${STATE_WORDS[PRESENT]} · ${no} absent${unsure ? ` · ${unsure} unsure` : ""}`;
    setText(this.sum, single ? "" : said);
  }
}

/** The classes that the model marks and nobody has answered: class -> probability. @param {any} action */
function listGuesses({ item, preset, scores }) {
  const answered = new Set(item.labels.map((/** @type {any} */ label) => label.class));
  const chances = new Map(scores);
  return new Map(preset.filter((/** @type {number} */ id) => !answered.has(id)).map((/** @type {number} */ id) => [id, chances.get(id)]));
}

/** How the classes of an action are marked before the person has done anything: class -> state. @param {any} action */
export function buildInitialMarks({ item, preset }) {
  return new Map([
    ...preset.map((/** @type {number} */ id) => [id, PRESENT]),
    ...item.labels.map((/** @type {any} */ label) => [label.class, label.state]),
  ]);
}
