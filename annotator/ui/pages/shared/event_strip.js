// @ts-check
/**
 * The film strip below an image: the event that it belongs to, such as the photos of one trigger of a camera trap. It is
 * asked for a moment after the image was drawn, so that no key waits for it.
 *
 * Shift and the arrow keys walk along the strip. The frame that one looks at lies over the image meanwhile, and nothing is
 * answered: a key that would answer only ends the look. Shift+Enter gives this person's answers on the image in front to
 * the other images of the event, without those that were marked as exceptions.
 */

import { findMissingAnswers } from "./shared_answers.js";
import { HIDDEN_WORDS, afterPaint, el, formatCount, keyButton } from "./dom.js";
import { createPicture } from "./pictures.js";
import { ABSENT, PRESENT } from "./states.js";

const EVENT_DELAY_MILLISECONDS = 250; // milliseconds until the event is asked for, so as not to delay a quick next key
const FRAME_MILLISECONDS = 700; // milliseconds a frame is on screen while the event plays
const MAX_ANSWERS = 10_000; // answers in one step, as the server takes them

/** What an image of the event gets: the answers, nothing, or "absent" for each class that is present in front. */
const SAME_MARK = "same", LEFT_OUT_MARK = "left out", WITHOUT_MARK = "without";
const NEXT_MARKS = { [SAME_MARK]: LEFT_OUT_MARK, [LEFT_OUT_MARK]: WITHOUT_MARK, [WITHOUT_MARK]: SAME_MARK };
const MARK_SIGNS = { [SAME_MARK]: "✓", [LEFT_OUT_MARK]: "–", [WITHOUT_MARK]: "✕" };
const MARK_TEXTS = { [SAME_MARK]: "gets these answers", [LEFT_OUT_MARK]: "left out", [WITHOUT_MARK]: "gets “absent” instead of “present”" };

/** The row of a page that can also say that nothing else is there. @type {[string | string[], string]} */
export const REST_ROW = [["Ctrl", "Enter"], "the same, and nothing else is on any of them"];

export const LOOKING_TEXT = "You look at another image. Escape comes back. Nothing was answered.";

/** Rows for the help of a page with a strip. @type {[string | string[], string][]} */
export const STRIP_KEYS = [
  [["Shift", "Enter"], "for the whole event: your answers here also go to its other images"],
  [["Shift", "ArrowLeft", "ArrowRight"], "look at the other images of the event (while the picture is not zoomed)"],
  [["Shift", "ArrowDown"], "mark that image: left out, or absent there, or the same again (also a click)"],
  [["Shift", "ArrowUp"], "play the event slowly; Escape comes back"],
];

/**
 * @typedef {{id: number, name: string, labels: number[], away: boolean}} Frame  away: somebody else's to answer
 * @typedef {[number, number, number, number]} Copy  image, class, state, image in front
 */

export class EventStrip {
  /**
   * @param {import("./session.js").Session} session
   * @param {{stage: import("./image_stage.js").ImageStage, onWhole: () => void, onRest?: () => void}} options
   *   onWhole: the whole event is to be answered; onRest: and nothing else is on any of its images
   */
  constructor(session, { stage, onWhole, onRest }) {
    this.session = session;
    this.stage = stage;
    this.onWhole = onWhole;
    this.onRest = onRest;
    /** The image in front. @type {any} */
    this.item = null;
    /** @type {{event: number | null, images: number, first: number, frames: Frame[]} | null} null: not asked for yet */
    this.told = null;
    /** What images that are not as usual get. @type {Map<number, string>} */
    this.marks = new Map();
    /** The frame that one looks at; null: the image in front. @type {number | null} */
    this.looking = null;
    this.timer = 0;
    this.playing = 0;
    this.redraw = afterPaint(() => this.#draw());
    this.look = el("div", { class: "look", hidden: true });
    this.words = el("span", { class: "where" });
    this.frames = el("div", { class: "frames", role: "group", "aria-label": "Images of this event" });
    this.frames.addEventListener("click", (event) => this.#onClick(event));
    this.wholeButton = keyButton("Whole event", "Shift+Enter", () => onWhole(), { title: "Your answers here also go to its other images" });
    this.playButton = keyButton("Play", "Shift+ArrowUp", () => this.play());
    this.element = el("div", { class: "strip unknown", role: "group", "aria-label": "Event", hidden: !session.data.events },
      el("div", { class: "tools" }, this.words, this.playButton, this.wholeButton), this.frames);
    stage.element.append(this.look);
  }

  /** An image is on screen; its event is asked for once the person stays. @param {any} item null: none */
  show(item) {
    if (!this.session.data.events) return;
    if (item?.id === this.item?.id) return;
    this.back();
    this.item = item;
    this.marks.clear();
    this.element.classList.add("unknown"); // no more than this between a key and its frame
    if (this.told?.frames.some(({ id }) => id === item?.id)) this.redraw(); // the next one of the same event
    else this.told = null;
    this.renew(EVENT_DELAY_MILLISECONDS);
  }

  /** Ask for the event: its images may have other answers. @param {number} [pause] milliseconds before that */
  renew(pause = 0) {
    clearTimeout(this.timer);
    if (this.item && this.session.data.events) this.timer = window.setTimeout(() => this.#ask(), pause);
  }

  close() {
    clearTimeout(this.timer);
    this.back();
  }

  /** Whether another frame than the image in front is on screen: nothing is answered then. */
  get isLooking() {
    return this.looking != null;
  }

  /**
   * @param {string} key @param {KeyboardEvent} event
   * @returns {boolean} whether the key was about the event, or ended a look at another frame
   */
  key(key, event) {
    if (this.element.hidden) return false;
    if (key === "set" && this.onRest) {
      if (!event.repeat) this.onRest();
      return true;
    }
    const command = event.shiftKey && this.stage.view.scale === 1 && {
      ArrowLeft: () => this.walk(-1),
      ArrowRight: () => this.walk(1),
      ArrowDown: () => !event.repeat && this.turn(this.looking),
      ArrowUp: () => !event.repeat && this.play(),
      Enter: () => !event.repeat && this.onWhole(),
    }[key];
    if (command) {
      command();
      return true;
    }
    const looks = ["Shift", "PageUp", "PageDown", "Home", "?", "F1"].includes(key);
    if (!this.isLooking || looks) return false;
    this.back();
    if (key !== "Escape") this.session.showMessage(`Back at ${this.item?.name ?? "the image"}. Nothing was answered.`);
    return true;
  }

  /** Look at the frame beside the one on screen; from the image in front on. @param {1 | -1} by */
  walk(by) {
    const frames = this.told?.frames ?? [];
    const here = frames.findIndex(({ id }) => id === (this.looking ?? this.item?.id));
    const next = frames[here + by];
    if (here < 0 || !next) {
      this.session.showMessage(this.#describeLack() || `This is the ${by > 0 ? "last" : "first"} image of the event.`);
      return;
    }
    this.#stop();
    this.#lookAt(next);
  }

  /** Show all frames slowly, then the image in front again. */
  play() {
    if (this.playing) {
      this.back();
      return;
    }
    const frames = [...(this.told?.frames ?? [])];
    if (frames.length < 2) {
      this.session.showMessage(this.#describeLack());
      return;
    }
    const step = () => {
      const frame = frames.shift();
      if (frame) this.#lookAt(frame);
      else this.back();
    };
    this.playing = window.setInterval(step, FRAME_MILLISECONDS);
    step();
  }

  /** The image in front is on screen again. */
  back() {
    this.#stop();
    if (!this.isLooking) return;
    this.looking = null;
    this.look.hidden = true;
    this.look.replaceChildren();
    this.#markShown();
  }

  /** Mark a frame as an exception, or as another one, or as none. @param {number | null} id of its image */
  turn(id) {
    const frame = this.others.find((other) => other.id === id);
    if (!frame) {
      this.session.showMessage(id == null || id === this.item?.id ? "Look at another image of the event first." : "That image is somebody else's to answer.");
      return;
    }
    const mark = NEXT_MARKS[this.marks.get(frame.id) ?? SAME_MARK];
    this.marks.set(frame.id, mark);
    this.#draw();
    if (this.looking === frame.id) this.#lookAt(frame);
    this.session.showMessage(`${getShortName(frame.name)} ${MARK_TEXTS[mark]}.`);
  }

  /** The other images of the event that may be answered. */
  get others() {
    return (this.told?.frames ?? []).filter(({ id, away }) => id !== this.item?.id && !away);
  }

  /**
   * What the other images get of these answers to the image in front. Null, with words, where that is not known.
   * @param {[number, number][]} answers [class, state] @returns {Copy[] | null}
   */
  listCopies(answers) {
    const alone = this.#describeLack() || (this.others.length ? "" : "Other people answer the other images of this event.");
    if (alone) this.session.showMessage(`${alone} Nothing was answered.`);
    else {
      const [same, without] = [SAME_MARK, WITHOUT_MARK].map((mark) => this.others.filter(({ id }) => (this.marks.get(id) ?? SAME_MARK) === mark));
      const turned = answers.map(([class_, state]) => /** @type {[number, number]} */ ([class_, state === PRESENT ? ABSENT : state]));
      const cells = [...findMissingAnswers(same, answers), ...findMissingAnswers(without, turned)];
      if (cells.length <= MAX_ANSWERS) return cells.map((cell) => /** @type {Copy} */ ([...cell, this.item.id]));
      this.session.showMessage(`That would be ${formatCount(cells.length, "answer")} at once; ${MAX_ANSWERS.toLocaleString("en")} at most. Nothing was answered.`);
    }
    return null;
  }

  /**
   * The same of this person's labels of the image in front; null, with words, also where there are none to give.
   * @param {any[]} labels @returns {Copy[] | null}
   */
  listLabelCopies(labels) {
    const me = this.session.data.annotator;
    const own = labels.filter(({ by }) => by == null || by === me).map((label) => /** @type {[number, number]} */ ([label.class, label.state]));
    const copies = own.length ? this.listCopies(own) : null;
    if (!own.length) this.session.showMessage("Answer this image first: its event gets the same answers.");
    else if (copies && !copies.length) this.session.showMessage("The other images have these answers already.");
    return copies?.length ? copies : null;
  }

  /** These answers were given, or taken back. @param {Copy[]} copies @param {boolean} given */
  noteCopies(copies, given) {
    for (const [image, class_] of copies) {
      const frame = this.told?.frames.find(({ id }) => id === image);
      if (frame) frame.labels = given ? [...frame.labels, class_] : frame.labels.filter((label) => label !== class_);
    }
    this.redraw();
  }

  async #ask() {
    const { item } = this;
    await this.session.outbox.flush(); // what was answered here counts
    const told = await this.session.api.post("/api/event", { image: item.id }).catch(() => null);
    if (!told || item !== this.item) return;
    this.told = told;
    this.#draw();
  }

  #draw() {
    const { told, item } = this;
    if (!told) return;
    const { images, first, frames } = told;
    const place = frames.findIndex(({ id }) => id === item?.id);
    const alone = this.#describeLack();
    const part = frames.length < images ? `, ${frames.length} shown` : "";
    this.words.textContent = alone || `Image ${first + place + 1} of ${images.toLocaleString("en")} in this event${part}`;
    for (const button of [this.playButton, this.wholeButton]) button.hidden = Boolean(alone);
    this.frames.replaceChildren(...(alone ? [] : frames.map((frame) => this.#frame(frame))));
    this.element.classList.remove("unknown");
    this.#markShown();
    this.frames.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Why the image in front has no others beside it, "" where it has. */
  #describeLack() {
    if (!this.told) return "Loading the event...";
    const { event, images, frames } = this.told;
    if (event == null) return "This image is in no event.";
    if (images < 2) return "The event of this image has no other.";
    if (!frames.some(({ id }) => id === this.item?.id)) return `${HIDDEN_WORDS}.`;
    return frames.length < 2 ? "The other images of this event wait for blind answers." : "";
  }

  /** @param {Frame} frame */
  #frame({ id, name, labels, away }) {
    const picture = createPicture(id);
    picture.loading = "lazy";
    picture.src = this.session.api.url(`/api/thumb/${id}`);
    const front = id === this.item?.id;
    const mark = this.marks.get(id) ?? SAME_MARK;
    const spoken = front ? "on screen" : away ? "somebody else answers it" : MARK_TEXTS[mark];
    const answered = labels.length ? `, ${formatCount(labels.length, "answer")}` : "";
    const props = { type: "button", "data-image": id, "data-mark": front || away ? "" : mark, title: `${name}${answered}`, "aria-label": `${getShortName(name)}: ${spoken}${answered}`, ...(front ? { "aria-current": "true" } : {}) };
    const sign = front ? "" : away ? "·" : MARK_SIGNS[mark];
    return el("button", props, picture, el("span", { class: "sign", "aria-hidden": "true" }, sign),
      ...(labels.length ? [el("span", { class: "count", "aria-hidden": "true" }, String(labels.length))] : []));
  }

  /** Which frame is on screen. */
  #markShown() {
    for (const button of this.frames.querySelectorAll("button")) {
      const at = Number(button.dataset.image) === this.looking;
      button.classList.toggle("at", at);
      if (at) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  /** @param {Frame} frame */
  #lookAt(frame) {
    if (frame.id === this.item?.id && !this.playing) {
      this.back();
      return;
    }
    this.looking = frame.id;
    const picture = createPicture(frame.id);
    picture.src = this.session.api.url(`/api/image/${frame.id}`);
    const mark = frame.id === this.item?.id ? "" : ` · ${frame.away ? "somebody else's" : MARK_TEXTS[this.marks.get(frame.id) ?? SAME_MARK]}`;
    this.look.replaceChildren(picture, el("p", {}, `Looking at ${getShortName(frame.name)}${mark}`));
    this.look.hidden = false;
    this.#markShown();
  }

  #stop() {
    clearInterval(this.playing);
    this.playing = 0;
  }

  /** @param {Event} event */
  #onClick(event) {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    const id = Number(button.dataset.image);
    if (id === this.item?.id) this.back();
    else this.turn(id);
  }
}

/**
 * Take a step that answers other images of an event. Those of them that were not on screen yet leave the queue: the server
 * gives them again where something is left to answer.
 * @param {import("./page.js").Page & {strip: EventStrip}} page @param {any} entry the decision, with its copies
 * @param {{forward: () => void, back: () => void, answered?: number}} screen as in Page.perform
 */
export function performForEvent(page, entry, { forward, back, answered }) {
  /** @type {Copy[]} */
  const copies = entry.copies;
  const ids = new Set(copies.map(([image]) => image));
  const label = (/** @type {boolean} */ given) => {
    const { items, strip } = page;
    strip.noteCopies(copies, given);
    if (given) items.queue = items.queue.filter((item) => item.seen || !ids.has(item.id));
    for (const [image, class_, state] of copies) {
      const item = items.find(image);
      const others = item?.labels?.filter((/** @type {any} */ known) => known.class !== class_);
      if (item && others) item.labels = given ? [...others, { class: class_, state, source: "event" }] : others;
    }
  };
  page.perform(entry, {
    answered,
    forward: () => {
      label(true);
      forward();
    },
    back: () => {
      label(false);
      back();
    },
  });
  page.session.showMessage(`Answered ${formatCount(ids.size, "other image")} of the event. Backspace undoes it.`, true);
}

/** @param {string} name */
function getShortName(name) {
  return name.split("/").at(-1) ?? name;
}
