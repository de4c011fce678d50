// @ts-check
/**
 * Which presses are decisions. A key, button or place that is pressed twice by accident must not decide what came on
 * screen between the two: nobody has seen that yet. All pages ask here before they take an answer, and what is no
 * decision is dropped with a word. docs/rules.md has the rules; their numbers are here.
 *
 * A press is judged by when it began and by what was on screen then; an item counts from the frame that shows it, so that
 * a slow machine gives nobody less time.
 */

import { HIDDEN_DRAW_MILLISECONDS } from "./dom.js";

export const MIN_SEEN_MILLISECONDS = 300; // milliseconds on screen after which a press can be about what is shown
const MIN_MANY_SEEN_MILLISECONDS = 700; // milliseconds, where one press gives many answers: a double click takes up to 500 ms
const MIN_REPEAT_MILLISECONDS = 110; // milliseconds; nobody presses one key twice on purpose in less
const RHYTHM_PAUSES = 3; // pauses between presses that make a rhythm: the last one belongs to the press that is judged
const OFF_BEAT_SHARE = 0.3; // share by which each of them may differ from their median
const TOO_QUICK_SHARE = 0.2; // the same for a press that comes sooner than the rhythm has it
const ONE_STROKE_MILLISECONDS = 50; // milliseconds within which one finger strikes two keys
const SAME_PLACE_PIXELS = 16; // CSS pixels between two presses of a pointer at one place
const MODIFIER_KEYS = ["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"];

const DROPPED_TEXTS = {
  key: "Repeated key ignored.",
  pointer: "Second click ignored.",
  soon: "That came too soon. Nothing was answered.",
  many: "Too soon to have seen all of it. Nothing was answered.",
};

/**
 * @typedef {"mark" | "answer" | "rest" | "many"} Kind
 *   mark turns a tile, which the person may do twice; answer is one answer; rest: the answer that is left on screen;
 *   many: several answers in one press, such as all tiles of a grid
 *
 * @typedef {{key: string, at: number, x: number, y: number, target: EventTarget | null, turn: number, down: boolean,
 *            repeat: boolean, judged?: {turn: number, allowed: boolean}}} Press
 *   key: "" for a pointer; turn: of the item on screen; repeat: the key has been held down since
 *
 * @typedef {{x: number, y: number}} Place in CSS pixels
 */

/** What a press is that saves whatever is on screen. @param {number} answers how many it gives @returns {Kind} */
export function chooseSaveKind(answers) {
  return answers > 1 ? "many" : "rest";
}

export class PressGuard {
  /** @param {(words: string) => void} say */
  constructor(say) {
    this.say = say;
    /** Grows with each item that is put on screen. */
    this.turn = 0;
    this.shownAt = 0;
    this.paintedAt = Infinity;
    /** @type {Press | null} */
    this.press = null;
    /** @type {Press | null} */
    this.before = null;
    /** Presses since the item on screen was drawn, with the one that is being handled. @type {Press[]} */
    this.turnPresses = [];
    /** Where the pointer is, where it was when the item was drawn, and whether it has moved from there. @type {Place | null} */
    this.pointer = null;
    /** @type {Place | null} */
    this.pointerStart = null;
    this.isPointerMoved = false;
    /** When keys were pressed, without bounces, the latest last. @type {number[]} */
    this.beats = [];
    /** Until then keys may be meant for items after one whose key was dropped. */
    this.heldUntil = 0;
    const listeners = { keydown: this.#keyDown, keyup: this.#keyUp, pointerdown: this.#pointerDown, pointermove: this.#pointerMove, click: this.#click };
    this.listeners = Object.entries(listeners).map(([name, act]) => /** @type {const} */ ([name, (/** @type {any} */ event) => act.call(this, event)]));
    for (const [name, act] of this.listeners) window.addEventListener(name, act, { capture: true, passive: true });
  }

  close() {
    for (const [name, act] of this.listeners) window.removeEventListener(name, act, { capture: true });
  }

  /** Another item is put on screen, or the picture of one that was on its way. */
  onItemShown() {
    this.turn += 1;
    const { turn } = this;
    this.shownAt = performance.now();
    this.paintedAt = Infinity;
    this.turnPresses = [];
    this.pointerStart = this.pointer;
    this.isPointerMoved = false;
    const painted = () => {
      if (turn === this.turn) this.paintedAt = performance.now();
    };
    requestAnimationFrame(() => window.setTimeout(painted));
    // A hidden window draws no frames. Where the frame is only late, it is the frame that counts.
    window.setTimeout(() => this.paintedAt === Infinity && painted(), HIDDEN_DRAW_MILLISECONDS);
  }

  /** Since when the item has been on screen, in milliseconds of performance.now(). */
  get since() {
    return this.paintedAt === Infinity ? this.shownAt : this.paintedAt;
  }

  /** Whether the item on screen has been there for so long that a press is about it. */
  get isSettled() {
    return performance.now() - this.paintedAt >= MIN_SEEN_MILLISECONDS;
  }

  /**
   * Return whether the press that is being handled decides about what is on screen; else it was dropped, and said so.
   * A press decides about one item only.
   * @param {Kind} [kind] @param {boolean} [drawn] whether what is on screen has been drawn; until then nothing is decided
   */
  allows(kind = "answer", drawn = true) {
    const { press } = this;
    if (!press) return drawn; // a program's click
    if (press.judged) return press.judged.turn === this.turn && press.judged.allowed;
    const words = press.repeat ? null : this.#findObjection(press, kind) || (drawn ? "" : DROPPED_TEXTS.soon);
    press.judged = { turn: this.turn, allowed: words === "" };
    if (words) this.say(words);
    return press.judged.allowed;
  }

  /** Why this press is no decision, "" where it is one. @param {Press} press @param {Kind} kind */
  #findObjection(press, kind) {
    const { before } = this;
    if (press.turn !== this.turn) return DROPPED_TEXTS.soon; // begun before the item was there
    const early = press.at - this.paintedAt < MIN_SEEN_MILLISECONDS;
    const other = before?.turn !== this.turn; // the press before was about another item
    const pause = before ? press.at - before.at : Infinity;
    if (before && isSamePress(press, before)) {
      const again = (early && other) || (pause < MIN_SEEN_MILLISECONDS && (kind !== "mark" || press.target !== before.target));
      if (again && !(this.#isSteady() && (kind === "mark" || kind === "answer"))) {
        if (press.key && pause >= MIN_REPEAT_MILLISECONDS) this.heldUntil = press.at + MIN_SEEN_MILLISECONDS;
        return press.key ? DROPPED_TEXTS.key : DROPPED_TEXTS.pointer;
      }
      return kind === "many" && !this.#hasLooked(press) ? DROPPED_TEXTS.many : "";
    }
    if (press.key && press.at < this.heldUntil) {
      this.heldUntil = press.at + MIN_SEEN_MILLISECONDS;
      return DROPPED_TEXTS.soon;
    }
    if (kind === "many") return early ? DROPPED_TEXTS.soon : this.#hasLooked(press) ? "" : DROPPED_TEXTS.many;
    if (!early || this.#isSteady()) return "";
    const struck = other && press.key && before?.key && before.down && pause < ONE_STROKE_MILLISECONDS;
    // The item came late, or in place of another: whoever pressed nothing meanwhile was looking at something else.
    const waited = other && before && this.since - before.at >= MIN_SEEN_MILLISECONDS;
    return kind === "rest" || struck || waited ? DROPPED_TEXTS.soon : "";
  }

  /** Whether all of the item can have been seen: it was there long enough, or the person did something else since. @param {Press} press */
  #hasLooked(press) {
    const others = this.turnPresses.filter((other) => !isSamePress(other, press) && other.judged?.allowed !== false);
    return press.at - this.paintedAt >= MIN_MANY_SEEN_MILLISECONDS || this.isPointerMoved || others.length > 0;
  }

  /** Whether the last keys, this one included, came in a steady rhythm: of whoever knows what comes. */
  #isSteady() {
    const { beats, press } = this;
    if (!press?.key || beats.length <= RHYTHM_PAUSES || beats.at(-1) !== press.at) return false;
    const pauses = beats.slice(1).map((at, index) => at - beats[index]);
    const median = [...pauses].sort((a, b) => a - b)[RHYTHM_PAUSES >> 1];
    const off = (/** @type {number} */ pause) => Math.abs(pause - median) / median;
    return median >= MIN_REPEAT_MILLISECONDS && pauses.every((pause) => off(pause) <= OFF_BEAT_SHARE) && pauses[RHYTHM_PAUSES - 1] >= (1 - TOO_QUICK_SHARE) * median;
  }

  /** @param {Omit<Press, "turn" | "down" | "repeat">} press */
  #recordPress(press) {
    this.before = this.press;
    this.press = { ...press, turn: this.turn, down: press.key !== "", repeat: false };
    if (press.at >= this.paintedAt) this.turnPresses.push(this.press);
    const { before } = this;
    const bounced = before && isSamePress(this.press, before) && press.at - before.at < MIN_REPEAT_MILLISECONDS;
    if (press.key && !bounced) this.beats = [...this.beats, press.at].slice(-1 - RHYTHM_PAUSES);
  }

  /** @param {KeyboardEvent} event */
  #keyDown(event) {
    if (MODIFIER_KEYS.includes(event.key)) return;
    const { shiftKey, altKey, ctrlKey, metaKey, timeStamp: at } = event;
    const key = [shiftKey, altKey, ctrlKey || metaKey, event.code || event.key].join();
    if (event.repeat && this.press?.key === key) this.press.repeat = true;
    else this.#recordPress({ key, at, x: 0, y: 0, target: null });
  }

  /** @param {KeyboardEvent} event */
  #keyUp(event) {
    if (!MODIFIER_KEYS.includes(event.key) && this.press) this.press.down = false;
  }

  /** @param {PointerEvent} event */
  #pointerDown(event) {
    if (!event.isPrimary) return;
    const place = { x: event.clientX, y: event.clientY };
    this.pointer = place; // a finger that taps did not move there
    this.#recordPress({ key: "", at: event.timeStamp, ...place, target: findPressable(event) });
  }

  /** @param {PointerEvent} event */
  #pointerMove({ isPrimary, timeStamp: at, clientX: x, clientY: y }) {
    if (!isPrimary) return;
    this.pointer = { x, y };
    if (at < this.paintedAt || !this.pointerStart) this.pointerStart = this.pointer;
    // A hand that rests trembles.
    else if (Math.hypot(x - this.pointerStart.x, y - this.pointerStart.y) > SAME_PLACE_PIXELS) this.isPointerMoved = true;
  }

  /** A click without a pointer: of a button that has the focus, whose key is known, or of another tool. @param {MouseEvent} event */
  #click(event) {
    if (event.detail !== 0 || !event.isTrusted || this.press?.down) return;
    if (/(Space|Enter)$/.test(this.press?.key ?? "") && !this.press.judged) return;
    this.#recordPress({ key: "", at: event.timeStamp, x: NaN, y: NaN, target: findPressable(event) });
  }
}

/** Whether two presses are of one key, or of one button or place. @param {Press} press @param {Press} before */
function isSamePress(press, before) {
  if (press.key || before.key) return press.key === before.key;
  return press.target === before.target || Math.hypot(press.x - before.x, press.y - before.y) <= SAME_PLACE_PIXELS;
}

/** The button an event is of, or what lies under the pointer. @param {Event} event */
function findPressable(event) {
  const target = event.composedPath()[0];
  return target instanceof Element ? target.closest("button, a, [role=option], .tile") ?? target : target;
}
