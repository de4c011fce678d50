// @ts-check
/**
 * Annotate: one image, one key, the next image. The decision is bound to the image that is on screen, here in the
 * browser, before anything is sent.
 */

import { ClassCard } from "./classcard.js";
import { ClassList, likelihoods } from "./classlist.js";
import { STATE_WORDS, counted, el, keyButton } from "../shared/dom.js";
import { Finder } from "./finder.js";
import { FlagDialog } from "./flag.js";
import { Order } from "./order.js";
import { Page } from "../shared/page.js";
import { onward, placeholder } from "../shared/placeholder.js";
import { STAGE_KEYS, Stage } from "../shared/stage.js";
import { typing } from "../shared/keys.js";

const PRESENT = 1;
const ABSENT = -1;
const UNSURE = 0;
const PAUSE = 250; // milliseconds until the likely classes of an image are listed, so as not to delay a quick next key

const NEWEST = "This is the newest image. Label it, or press Space to skip it.";
const WIDE = window.matchMedia("(min-width: 761px)");

const HINTS = [
  "Press the key on a class: the image is labeled and the next image appears.",
  "Press / and type to find any class by its name.",
  "Backspace undoes; ? lists all keys.",
];
/** @type {{title: string, rows: [string | string[], string][]}[]} */
const KEYS = [
  {
    title: "Label (Settings changes the keys of classes)",
    rows: [
      ["1", "label the image with the class of that key; the next image appears"],
      [["Shift", "1"], "label it, and stay on this image"],
      [["/", "Ctrl+K"], "find a class by name: Enter labels it, Shift+Enter labels it and stays; Enter with nothing typed closes the finder"],
      [["/", "?"], "in the finder: what the selected class means, with examples"],
      ["Enter", "nothing else here: mark every unanswered class absent"],
      ["-", "mark the next class unsure"],
      [".", "don't advance: stay on each image until you press Space"],
    ],
  },
  {
    title: "Go on, go back",
    rows: [
      [" ", "skip: the image comes back later; if you have labeled it, just go on"],
      [["ArrowLeft", "ArrowRight"], "previous image, next image"],
      [",", "flag the image with a note"],
      ["Backspace", "undo, as often as you like (also Ctrl+Z)"],
      [["Shift", "Backspace"], "redo (also Ctrl+Y)"],
      ["?", "this list (also F1)"],
    ],
  },
  { title: "Look closer", rows: STAGE_KEYS },
];

export default class AnnotatePage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "annotate", keys: KEYS, hints: HINTS });
    this.build();
    this.begin({ follows: "run", request: () => ({ mode: "annotate", order: this.order.name }) });
  }

  build() {
    const { session } = this;
    this.stay = false;
    this.unsure = false;
    this.pause = 0;
    /** The item that the message is about. @type {any} */
    this.shown = null;
    this.stage = new Stage();
    this.caption = el("div", { class: "caption" });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Labels of this image" });
    this.chips.addEventListener("click", (event) => this.chipClicked(event));
    this.chips.addEventListener("keydown", (event) => event.key === "Delete" && this.chipClicked(event));
    this.card = new ClassCard(session.api);
    this.list = new ClassList((class_, stay) => this.choose(class_, stay));
    this.finder = new Finder({
      likely: () => likelihoods(this.hand.current, session),
      states: () => this.list.marked,
      meaning: ({ name }) => (this.unsure ? `marks ${name} unsure` : `labels ${name}`),
      onNothing: () => this.session.say("Nothing was labeled. Enter means \"Nothing else here\" again."),
      onTake: (class_, stay) => this.choose(class_, stay),
      // Without room beside the list, a card would cover the list itself.
      onPoint: (class_, row) => this.card.point(class_, WIDE.matches ? row : null),
      ...(session.data.adds_classes ? { onAdd: (/** @type {string} */ name, /** @type {boolean} */ sure) => this.addClass(name, sure) } : {}),
    });
    const { project, orders, order: usual } = session.data;
    this.order = new Order({ project, orders, usual, onChange: () => this.hand.restart() });
    for (const part of [this.list.list, this.list.near]) this.card.watch(part, (id) => this.list.byId.get(id));
    this.flagging = new FlagDialog((note) => this.flag(note));
    const steps = el("div", { class: "tools steps", role: "group", "aria-label": "Images of this session" },
      keyButton("Previous", "ArrowLeft", () => this.earlier()),
      keyButton("Next", "ArrowRight", () => this.later(NEWEST)));
    this.unsureButton = keyButton("Unsure", "-", () => this.toggleUnsure(), { "aria-pressed": "false" });
    this.stayButton = keyButton("Don't advance", ".", () => this.toggleStay(), { "aria-pressed": "false" });
    const tools = el("div", { class: "tools answers", role: "group", "aria-label": "Other answers" },
      keyButton("Nothing else here", "Enter", () => this.done(), { class: "wide" }),
      keyButton("Skip", " ", () => this.skip()),
      this.unsureButton,
      this.stayButton,
      keyButton("Flag", ",", () => this.openFlag()));
    const about = el("div", { class: "about" }, this.caption, session.words);
    const left = el("div", { class: "left" }, this.stage.element, about, this.chips,
      el("div", { class: "row" }, steps, this.order.element, session.toolbar));
    const side = el("div", { class: "side" }, this.finder.element, this.list.likelyPart, this.list.list, tools);
    session.element.replaceChildren(session.help.hints, el("div", { class: "work" }, left, side), session.foot.element,
      session.help.dialog, this.flagging.element, this.card.element);
    this.#setClasses();
  }

  showClasses() {
    this.#setClasses();
    this.paint();
  }

  #setClasses() {
    this.list.setClasses(this.session.classes);
    this.finder.setClasses(this.session.classes);
  }

  close() {
    clearTimeout(this.pause);
    this.card.hide();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event */
  press(key, event) {
    if (this.flagging.element.open) return this.flagging.key(key, event);
    if (event.composedPath()[0] === this.finder.field && key !== "find") {
      if (key !== "?") return this.finder.key(event);
      const [class_, row] = this.finder.chosen;
      this.card.point(class_, row, 0);
      return true;
    }
    if (typing(event) && key !== "find") {
      if (key === "Escape") this.order.field.blur();
      return key === "Escape";
    }
    const class_ = this.list.byKey.get(key);
    if (class_) {
      if (!event.repeat) this.choose(class_, event.shiftKey);
      return true;
    }
    if (this.stage.key(key, event)) return true;
    const once = (/** @type {() => void} */ act) => () => !event.repeat && act();
    const command = {
      "/": () => this.finder.focus(),
      find: () => this.finder.focus(),
      " ": once(() => this.skip()),
      Enter: once(() => this.done()),
      "-": once(() => this.toggleUnsure()),
      ".": once(() => this.toggleStay()),
      ",": once(() => this.openFlag()),
      ArrowLeft: () => this.earlier(),
      ArrowRight: () => this.later(NEWEST),
      Escape: () => this.card.hide(),
    }[key];
    if (!command) return false;
    command();
    return true;
  }

  /** @param {{id: number, name: string}} class_ @param {boolean} stay */
  choose(class_, stay) {
    const item = this.ready();
    if (!item) return;
    const state = this.unsure ? UNSURE : PRESENT;
    const goOn = !stay && !this.stay && !this.unsure;
    if (this.unsure) this.toggleUnsure();
    this.label(item, class_.id, state, goOn);
  }

  /** @param {any} item @param {number} id of the class @param {number} state @param {boolean} goOn */
  label(item, id, state, goOn) {
    const labels = [...item.labels.filter((label) => label.class !== id), { class: id, state, source: "click" }];
    this.card.forget(id);
    this.answer(item, { action: "label", class: id, state }, labels, goOn);
  }

  skip() {
    const item = this.hand.current;
    if (!item) return;
    // For an image that was answered just now, gone back to, or is complete, a skip only goes on. Any other image, with or
    // without answers, is stored as skipped and comes last.
    const answered = item.labels !== item.arrived || item.labels.length >= this.session.classes.length;
    if (item.passedOn || answered) this.hand.advance();
    else this.answer(item, { action: "skip" }, item.labels, true);
  }

  done() {
    const item = this.ready();
    if (!item) return;
    const answered = new Set(item.labels.map((label) => label.class));
    const rest = this.session.classes.filter((class_) => !answered.has(class_.id));
    const labels = [...item.labels, ...rest.map((class_) => ({ class: class_.id, state: ABSENT, source: "done" }))];
    this.answer(item, { action: "done", source: "done" }, labels, true);
  }

  /**
   * A decision about an image, which has these labels from then on.
   * @param {any} item @param {any} decision @param {any[]} labels @param {boolean} goOn to the next image
   */
  answer(item, decision, labels, goOn) {
    const before = item.labels;
    const all = this.session.classes.length;
    const partly = (/** @type {any[]} */ some) => Number(some.length > 0 && some.length < all);
    const labeled = Number(before.length === 0 && labels.length > 0);
    const decided = Number(decision.action !== "skip");
    const become = (/** @type {any[]} */ next, /** @type {number} */ sign) => {
      item.labels = next;
      this.hand.count(sign * labeled, sign * decided, sign * (partly(labels) - partly(before)));
    };
    this.perform({ source: "click", ...decision, image: item.id, milliseconds: this.hand.looked }, {
      forward: () => {
        become(labels, 1);
        if (goOn && this.hand.current?.id === item.id) this.hand.advance();
        else this.comeTo(item);
      },
      back: () => {
        become(before, -1);
        this.bringBack(item);
      },
    });
  }

  openFlag() {
    const item = this.hand.current;
    if (item) this.flagging.open(item.name, item.flag ?? "");
  }

  /** @param {string} note */
  flag(note) {
    const item = this.hand.current;
    const before = item?.flag ?? "";
    if (!item || note === before) return;
    this.perform({ action: "flag", image: item.id, note, source: "click", milliseconds: this.hand.looked }, {
      forward: () => {
        item.flag = note || null;
        this.comeTo(item);
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

  toggleStay() {
    this.stay = !this.stay;
    this.stayButton.setAttribute("aria-pressed", String(this.stay));
  }

  /** The cross on a chip: the class is absent. @param {Event} event */
  chipClicked(event) {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (!button) return;
    const item = this.ready();
    if (button.dataset.class == null) this.openFlag();
    else if (item) this.label(item, Number(button.dataset.class), ABSENT, false);
  }

  ready() {
    const item = super.ready();
    if (!item) this.shown = null; // the picture's arrival takes the words away
    return item;
  }

  /** @param {any} item */
  comeTo(item) {
    super.comeTo(item);
    this.showLabels();
  }

  /** @param {any} item */
  bringBack(item) {
    this.hand.bringBack(item);
    this.showLabels();
  }

  /**
   * The image of a step that is not in hand any more comes as the server has it.
   * @param {import("../shared/session.js").Step} step @param {"undone" | "redone"} how
   */
  async foreignStep({ entry }, how) {
    if (entry?.image != null) {
      const item = await this.hand.recall(entry.image);
      if (item && this.hand.current?.id === item.id) {
        Object.assign(this.hand.current, { labels: item.labels, flag: item.flag });
        this.showLabels();
      }
    }
    this.told(how, this.inWords(entry));
  }

  // What the person sees

  news() {
    this.order.tell(this.hand.news.run != null);
    super.news();
  }

  paint() {
    /** @type {any} */
    const item = this.hand.current;
    if (item) item.arrived ??= item.labels;
    if (item?.loaded) this.stage.show(item);
    else this.stage.empty(placeholder(this.hand), ...(item ? [] : [onward(this.session)]));
    this.list.forgetLikely();
    this.showLabels();
    if (item && item === this.shown) return; // the same one, now that its picture has come: the words about it stay
    this.shown = item;
    this.session.shown();
  }

  showLabels() {
    const item = this.hand.current;
    const labels = (item?.labels ?? []).filter((label) => this.list.byId.has(label.class)); // not of an archived class
    this.list.mark(new Map(labels.map((label) => [label.class, label.state])));
    const partly = labels.length > 0 && ` · ${labels.length} of ${counted(this.session.classes.length, "class", "classes")} answered`;
    this.caption.textContent = item ? item.name + (partly || "") : "";
    // Absent classes are crossed out in the list; only a correction by hand gets a chip.
    const chips = labels
      .filter((label) => label.state !== ABSENT || label.source === "click")
      .map((label) => this.chip(label));
    if (item?.flag) chips.unshift(el("button", { type: "button", class: "chip flag", title: "Edit the note" }, `Flag: ${item.flag}`));
    if (chips.length || this.chips.firstChild) this.chips.replaceChildren(...chips);
    clearTimeout(this.pause);
    this.pause = window.setTimeout(() => this.list.showLikely(likelihoods(this.hand.current, this.session)), PAUSE);
  }

  /** @param {any} label */
  chip({ class: id, state, by }) {
    const name = this.session.names.get(id) ?? "?";
    const words = state === PRESENT ? name : `${name} (${STATE_WORDS[state]})`;
    const chip = el("span", { class: "chip", "data-state": STATE_WORDS[state], title: by && `by ${by}` }, words);
    if (state !== ABSENT) {
      const cross = { type: "button", "data-class": id, "aria-label": `${name} is not on the image`, title: "Mark absent (Delete)" };
      chip.append(el("button", cross, "×"));
    }
    return chip;
  }
}
