// @ts-check
/**
 * Annotate: one image, one key, the next image. The decision is bound to the image that is on screen, here in the
 * browser, before anything is sent.
 */

import { ClassCard } from "./class_card.js";
import { ClassList, decodeLikelihoods } from "./class_list.js";
import { askAboutContradiction } from "../shared/contradictions.js";
import { HIDDEN_WORDS, STATE_WORDS, el, formatCount, keyButton, setText, showCaption } from "../shared/dom.js";
import { ClassFinder } from "./class_finder.js";
import { FlagDialog } from "../shared/flag.js";
import { KEY_HELP, buildHints } from "./annotate_texts.js";
import { LABEL_MODE_KEY, LabelMode } from "../shared/label_mode.js";
import { ImageAddress } from "./image_address.js";
import { QueryOrderField } from "./query_order.js";
import { Page } from "../shared/page.js";
import { SuggestionsNotice } from "./suggestions_notice.js";
import { formatCommentCount } from "../shared/history.js";
import { FileSequence } from "./file_sequence.js";
import { buildOnwardLinks, describeWait } from "../shared/placeholder.js";
import { ImageStage } from "../shared/image_stage.js";
import { StateButtons, summarizeStates } from "./state_buttons.js";
import { EventStrip, LOOKING_TEXT, performForEvent } from "../shared/event_strip.js";
import { WordDetector } from "../shared/word_detector.js";
import { isTyping } from "../shared/keys.js";
import { chooseSaveKind } from "../shared/press_guard.js";
import { ABSENT, PRESENT, UNSURE } from "../shared/states.js";

const LIKELY_DELAY_MILLISECONDS = 250; // milliseconds until the likely classes of an image are listed, so as not to delay a quick next key

const NOTHING_ELSE_TEXT = "Nothing else here";
const EMPTY_TEXT = "Nothing here: empty";
const NEWEST_IMAGE_TEXT = "This is the newest image. Label it, or press Space to skip it.";
const WIDE_WINDOW_QUERY = window.matchMedia("(min-width: 761px)");

export default class AnnotatePage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "annotate", keys: KEY_HELP, hints: buildHints(component.data.mode) });
    this.build();
    this.begin({ follows: "run", request: () => ({ mode: "annotate", order: this.orderField.name }), place: () => this.sequence.place });
    this.imageAddress.follow();
    this.session.onImage = (id) => this.imageAddress.open(id);
  }

  build() {
    const { session } = this;
    this.mode = new LabelMode(session);
    this.unsure = false;
    this.pause = 0;
    /** The item that the message is about. @type {any} */
    this.shown = null;
    this.stage = new ImageStage();
    this.strip = new EventStrip(session, { stage: this.stage, onWhole: () => this.answerEvent(), onRest: () => this.answerEvent(true) });
    this.suggestionsNotice = new SuggestionsNotice(session);
    this.caption = el("div", { class: "caption" });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Labels of this image" });
    this.chips.addEventListener("click", (event) => this.onChipClick(event));
    this.chips.addEventListener("keydown", (event) => event.key === "Delete" && this.onChipClick(event));
    this.stateButtons = new StateButtons((id, state) => this.set(id, state));
    this.card = new ClassCard(session.api, this.stateButtons, () => this.finder.field.value !== "");
    /** Said until a picture has been on screen with it. */
    this.notice = "";
    this.imageAddress = new ImageAddress(session, (words) => this.tell(words));
    this.list = new ClassList((class_, stay, alt) => this.choose(class_, stay, alt ? ABSENT : undefined));
    this.finder = new ClassFinder({
      likely: () => decodeLikelihoods(this.items.current, session),
      states: () => this.list.marked,
      meaning: ({ name }) => (this.unsure ? `marks ${name} unsure` : `labels ${name}`),
      onNothing: () => this.session.showMessage("Nothing was labeled. Enter means \"Nothing else here\" again."),
      onTake: (class_, stay) => this.give(class_, stay, this.unsure ? UNSURE : PRESENT),
      // Without room beside the list, a card would cover the list itself.
      onPoint: (class_, row) => this.card.point(class_, WIDE_WINDOW_QUERY.matches ? row : null),
      ...(session.data.adds_classes ? { onAdd: (/** @type {string} */ name, /** @type {boolean} */ sure) => this.addClass(name, sure) } : {}),
    });
    this.wordDetector = new WordDetector({ session, onWord: (typed) => this.finder.focus(typed) });
    this.finder.field.addEventListener("focus", () => session.hints.noteUse("find"));
    const { project, orders, order: usual } = session.data;
    this.orderField = new QueryOrderField({ project, orders, usual, onChange: () => this.sequence.restart() });
    this.sequence = new FileSequence(this);
    for (const part of [this.list.list, this.list.near, this.chips]) this.card.watch(part, (id) => this.list.byId.get(id));
    this.flagDialog = new FlagDialog((note) => this.flag(note));
    const steps = el("div", { class: "tools steps", role: "group", "aria-label": "Images of this session" },
      keyButton("Previous", "ArrowLeft", () => this.showEarlier()),
      keyButton("Next", "ArrowRight", () => this.showLater(NEWEST_IMAGE_TEXT)));
    this.doneButton = keyButton(NOTHING_ELSE_TEXT, "Enter", () => this.done(), { class: "wide" });
    this.unsureButton = keyButton("Unsure", "-", () => this.toggleUnsure(), { "aria-pressed": "false" });
    const tools = el("div", { class: "tools answers", role: "group", "aria-label": "Other answers" },
      this.doneButton,
      keyButton("Skip", " ", () => this.skip()),
      this.unsureButton,
      keyButton("Flag", ",", () => this.openFlag()));
    session.toolbar.append(session.historyButton);
    const about = el("div", { class: "about" }, this.caption, session.words);
    const under = el("div", { class: "under" }, this.sequence.before, el("div", { class: "middle" }, about, this.chips), this.sequence.next);
    const left = el("div", { class: "left" }, this.stage.element, this.strip.element, under,
      el("div", { class: "row" }, this.imageAddress.button, steps, this.orderField.element, this.sequence.same, session.toolbar));
    const side = el("div", { class: "side" }, el("div", { class: "picking" }, this.finder.element, this.mode.element), this.list.likelyPart, this.list.list, tools);
    session.element.replaceChildren(el("div", { class: "work" }, left, side), session.statusLine.element, session.hints.element,
      session.help.dialog, this.flagDialog.element, this.card.element);
    this.#setClasses();
  }

  showClasses() {
    this.#setClasses();
    this.paint();
  }

  #setClasses() {
    this.list.setClasses(this.session.classes, this.session.relations);
    this.finder.setClasses(this.session.classes);
  }

  /** @param {any} component */
  update(component) {
    super.update(component);
    this.imageAddress.follow(); // somebody followed a link to another image
  }

  getHistoryImage() {
    return this.items.current;
  }

  showComments() {
    this.showLabels();
  }

  showAnswers() {
    this.showLabels();
  }

  close() {
    this.imageAddress.close();
    clearTimeout(this.pause);
    this.strip.close();
    this.card.hide();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event */
  onKey(key, event) {
    if (this.flagDialog.element.open) return this.flagDialog.key(key, event);
    if (event.composedPath()[0] === this.finder.field && key !== "find") {
      if (key !== "?") return this.finder.key(event);
      const [class_, row] = this.finder.chosen;
      this.card.point(class_, row, 0);
      return true;
    }
    if (isTyping(event) && key !== "find") {
      if (key === "Escape") this.orderField.field.blur();
      return key === "Escape";
    }
    if (this.strip.key(key, event)) return true;
    return this.wordDetector.press(key, event, () => this.act(key, event));
  }

  /** A key that is about the image. @param {string} key @param {KeyboardEvent} event */
  act(key, event) {
    const alt = key.startsWith("Alt+");
    const class_ = this.list.byKey.get(alt ? key.slice(4) : key);
    if (class_) {
      if (!event.repeat) this.choose(class_, event.shiftKey, alt ? ABSENT : undefined);
      return true;
    }
    if (this.stage.key(key, event)) return true;
    const once = (/** @type {() => void} */ act) => () => !event.repeat && act();
    const command = {
      "/": () => this.finder.focus(),
      find: () => this.finder.focus(),
      " ": once(() => this.skip()),
      ".": once(() => this.skip()),
      Enter: once(() => this.done()),
      "-": once(() => this.toggleUnsure()),
      [LABEL_MODE_KEY]: once(() => this.mode.toggle()),
      ",": once(() => this.openFlag()),
      "[": () => this.sequence.visit("before"),
      "]": () => this.sequence.visit("after"),
      "=": once(() => this.sequence.copy()),
      ArrowLeft: () => this.showEarlier(),
      ArrowRight: () => this.showLater(NEWEST_IMAGE_TEXT),
      Escape: () => (this.card.open ? this.card.hide() : this.imageAddress.goBack()),
    }[key];
    if (!command) return false;
    command();
    return true;
  }

  /**
   * A class was pressed: it gets this state, or is unknown again where it has it already.
   * @param {{id: number}} class_ @param {boolean} stay @param {number} [state] as armed: unsure, or present
   */
  choose(class_, stay, state = this.unsure ? UNSURE : PRESENT) {
    const item = this.getPressedItem();
    const again = item && getState(item, class_.id) === state && this.session.pressGuard.isSettled;
    if (!again) return this.give(class_, stay, state);
    if (this.unsure) this.toggleUnsure();
    this.clear(item, class_.id);
  }

  /** A class was pressed, or found by its name, and has this state now. @param {{id: number}} class_ @param {boolean} stay @param {number} state */
  give(class_, stay, state) {
    const item = this.getPressedItem();
    if (!item) return;
    if (this.unsure) this.toggleUnsure();
    this.label(item, class_.id, state, state === PRESENT && !stay && this.mode.goesOn);
  }

  /** A state was chosen by the pointer, which has time: it stays. @param {number} id of the class @param {number | null} state */
  set(id, state) {
    const item = this.getPressedItem();
    if (!item || getState(item, id) === state) return;
    if (state == null) this.clear(item, id);
    else this.label(item, id, state, false);
  }

  /** Nobody has said anything of this class on this image. @param {any} item @param {number} id */
  clear(item, id) {
    this.card.forget(id);
    this.answer(item, { action: "clear", class: id }, item.labels.filter((label) => label.class !== id), false);
  }

  /** @param {any} item @param {number} id of the class @param {number} state @param {boolean} goOn */
  label(item, id, state, goOn) {
    const labels = [...item.labels.filter((label) => label.class !== id), { class: id, state, source: "click" }];
    this.card.forget(id);
    this.answer(item, { action: "label", class: id, state }, labels, goOn);
    this.askAbout(item, id);
  }

  /** An answer that contradicts others is asked about at once. @param {any} item @param {number} id of the class */
  askAbout(item, id) {
    const clear = (/** @type {number} */ other) => this.answer(item, { action: "clear", class: other }, item.labels.filter((label) => label.class !== other), false);
    askAboutContradiction(this.session, id, mapStates(item.labels), clear);
  }

  skip() {
    const item = this.items.current;
    if (!item) return;
    // For an image that was answered just now, gone back to, or is complete, a skip only goes on. Any other image, with or
    // without answers, is stored as skipped and comes last.
    const answered = item.opened || item.labels !== item.arrived || item.labels.length >= this.session.classes.length;
    if (item.passedOn || answered) this.goOn();
    else if (this.session.pressGuard.allows()) this.answer(item, { action: "skip" }, item.labels, true);
  }

  /** To the next image of the queue. */
  goOn() {
    this.sequence.leave(() => this.items.advance());
  }

  /** @param {string} words where the next image is a new one */
  showLater(words) {
    this.sequence.leave(() => super.showLater(words));
  }

  done() {
    const rest = this.items.current && this.listRest(this.items.current);
    const item = this.getPressedItem(chooseSaveKind(rest?.absent.length ?? 0));
    if (!item) return;
    const { absent, asked } = rest;
    if (asked.length && !absent.length) {
      this.session.showMessage(`One of ${asked.join(" and ")} is always present: which?`, true);
      return;
    }
    this.answer(item, { action: "done", source: "done" }, [...item.labels, ...absent], true);
  }

  /** The labels that "nothing else here" gives, and the groups of which one is to be named. @param {any} item */
  listRest(item) {
    const answered = mapStates(item.labels);
    const { classes: spared, asked } = this.session.relations.spared(answered);
    const rest = this.session.classes.filter(({ id }) => !answered.has(id) && !spared.has(id));
    return { absent: rest.map(({ id }) => ({ class: id, state: ABSENT, source: "done" })), asked };
  }

  /**
   * A decision about an image, which has these labels from then on.
   * @param {any} item @param {any} decision @param {any[]} labels @param {boolean} goOn to the next image
   */
  answer(item, decision, labels, goOn) {
    const before = item.labels;
    const all = this.session.classes.length;
    const isComplete = (/** @type {any[]} */ some) => Number(some.length + this.session.relations.implied(mapStates(some)).size >= all);
    const [answered, complete] = [labels.length - before.length, isComplete(labels) - isComplete(before)];
    this.perform({ source: "click", ...decision, image: item.id, milliseconds: this.items.viewMilliseconds }, {
      answered,
      complete,
      forward: () => {
        item.labels = labels;
        if (goOn && this.items.current?.id === item.id) this.goOn();
        else this.returnTo(item);
      },
      back: () => {
        item.labels = before;
        this.bringBack(item);
      },
    });
  }

  /**
   * What this person has answered here is said of the other images of the event, too: one step.
   * @param {boolean} [rest] and nothing else is here, nor on them
   */
  answerEvent(rest = false) {
    const item = this.getPressedItem("many");
    if (!item) return;
    const { absent } = rest ? this.listRest(item) : { absent: [] };
    const copies = this.strip.listLabelCopies([...item.labels, ...absent]);
    if (!copies) return;
    const before = item.labels;
    const cells = absent.map((label) => [item.id, label.class, label.state, null]);
    performForEvent(this, { action: "batch", source: rest ? "click" : "event", cells, copies, milliseconds: this.items.viewMilliseconds }, {
      forward: () => {
        item.labels = [...before, ...absent];
        if (this.items.current?.id === item.id) this.goOn();
        else this.returnTo(item);
      },
      back: () => {
        item.labels = before;
        this.bringBack(item);
      },
    });
  }

  openFlag() {
    const item = this.items.current;
    if (item) this.flagDialog.open(item.name, item.flag ?? "");
  }

  /** @param {string} note */
  flag(note) {
    const item = this.items.current;
    const before = item?.flag ?? "";
    if (!item || note === before) return;
    this.perform({ action: "flag", image: item.id, note, source: "click", milliseconds: this.items.viewMilliseconds }, {
      forward: () => {
        item.flag = note || null;
        this.returnTo(item);
      },
      back: () => {
        item.flag = before || null;
        this.bringBack(item);
      },
    });
  }

  toggleUnsure() {
    this.unsure = !this.unsure;
    this.unsureButton.setAttribute("aria-pressed", String(this.unsure));
    this.list.unsure(this.unsure);
  }

  /** The cross on a chip: the class is absent; elsewhere on it: all its states. @param {Event} event */
  onChipClick(event) {
    const target = /** @type {Element} */ (event.target);
    const button = /** @type {HTMLElement | null} */ (target.closest("button"));
    const chip = /** @type {HTMLElement | null} */ (target.closest(".chip[data-class]"));
    if (!button && chip) this.card.point(this.list.byId.get(Number(chip.dataset.class)), chip, 0);
    if (!button) return;
    const item = this.getPressedItem();
    if (button.dataset.class == null) this.openFlag();
    else if (item) this.label(item, Number(button.dataset.class), ABSENT, false);
  }

  /** @param {import("../shared/press_guard.js").Kind} [kind] */
  getPressedItem(kind) {
    if (this.strip.isLooking) {
      this.session.showMessage(LOOKING_TEXT);
      return null;
    }
    const item = super.getPressedItem(kind);
    if (!this.items.isReady) this.shown = null; // the picture's arrival takes the words away
    return item;
  }

  /** @param {any} item */
  returnTo(item) {
    super.returnTo(item);
    this.#applyLabels(item);
  }

  /** @param {any} item */
  bringBack(item) {
    this.sequence.backTo(item);
    this.items.bringBack(item);
    this.#applyLabels(item);
  }

  /** What is on screen has these labels; it may have been fetched anew since. @param {any} item */
  #applyLabels({ labels, flag, comments }) {
    Object.assign(this.items.current, { labels, flag, comments });
    this.showLabels();
  }

  /**
   * The image of a step that is not held any more comes as the server has it.
   * @param {import("../shared/session.js").Step} step @param {"undone" | "redone"} how
   */
  async onForeignStep(step, how) {
    const { entry } = step;
    if (entry?.image != null) {
      const item = await this.items.bringBackById(entry.image);
      if (item && this.items.current?.id === item.id) this.#applyLabels(item);
    }
    this.strip.renew();
    this.announceUndo(how, this.describeDecision(entry), step);
  }

  // What the person sees

  onNews() {
    this.orderField.describe(this.items.news.run != null);
    this.sequence.onNews();
    this.suggestionsNotice.onNews(this.items.news);
    super.onNews();
  }

  paint() {
    /** @type {any} */
    const item = this.items.current;
    if (item) item.arrived ??= item.labels;
    if (item?.loaded) this.stage.show(item);
    else this.stage.showText(describeWait(this.items), ...(item ? [] : [buildOnwardLinks(this.session)]));
    this.list.forgetLikely();
    this.showLabels();
    this.strip.show(item?.loaded ? item : null);
    if (item && item === this.shown) return; // the same one, now that its picture has come: the words about it stay
    this.shown = item;
    this.sequence.clear();
    this.session.onPictureShown();
    this.imageAddress.note();
    if (this.notice) this.session.showMessage(this.notice);
    if (item) this.notice = "";
  }

  /** Say something that the next picture does not take away. @param {string} words */
  tell(words) {
    this.session.showMessage(words);
    if (!this.items.current) this.notice = words;
  }

  showLabels() {
    const item = this.items.current;
    const labels = (item?.labels ?? []).filter((label) => this.list.byId.has(label.class)); // not of an archived class
    const states = mapStates(labels);
    const implied = this.session.relations.implied(states);
    this.list.mark(states, undefined, implied);
    this.stateButtons.mark(states);
    setText(/** @type {HTMLElement} */ (this.doneButton.firstElementChild), this.session.relations.isEmpty(states, implied) ? EMPTY_TEXT : NOTHING_ELSE_TEXT);
    const other = item?.with && `${item.with} has it open, too`;
    const said = item?.hidden && !labels.length ? HIDDEN_WORDS : summarizeStates(labels, this.session.classes.length, implied);
    showCaption(this.caption, item?.name, [said, formatCommentCount(item), ...(item?.events ?? []), other]);
    // Absent classes are crossed out in the list; only a correction by hand gets a chip.
    const chips = labels
      .filter((label) => label.state !== ABSENT || label.source === "click")
      .map((label) => this.chip(label));
    if (item?.flag) chips.unshift(el("button", { type: "button", class: "chip flag", title: "Edit the note" }, "Flag: ", el("bdi", {}, item.flag)));
    if (chips.length || this.chips.firstChild) this.chips.replaceChildren(...chips);
    clearTimeout(this.pause);
    this.pause = window.setTimeout(() => {
      this.list.showLikely(decodeLikelihoods(this.items.current, this.session));
      this.sequence.show(this.items.current);
    }, LIKELY_DELAY_MILLISECONDS);
  }

  /** @param {any} label */
  chip({ class: id, state, by }) {
    const name = this.session.names.get(id) ?? "?";
    const chip = el("span", { class: "chip", "data-class": id, "data-state": STATE_WORDS[state], title: by && `by ${by}` }, el("bdi", {}, name), state === PRESENT ? "" : ` (${STATE_WORDS[state]})`);
    if (state !== ABSENT) {
      const cross = { type: "button", "data-class": id, "aria-label": `${name} is not on the image`, title: "Mark absent (Delete)" };
      chip.append(el("button", cross, "×"));
    }
    return chip;
  }
}

/** @param {any[]} labels @returns {Map<number, number>} class -> state */
function mapStates(labels) {
  return new Map(labels.map((label) => [label.class, label.state]));
}

/** @param {any} item @param {number} id of a class @returns {number | null} null: unknown */
function getState(item, id) {
  return item.labels.find((/** @type {any} */ label) => label.class === id)?.state ?? null;
}
