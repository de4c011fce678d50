// @ts-check
/**
 * The history of one image: who decided what and when, what was undone by whom, flags and comments; and a field for
 * another comment. The page opens it with `;`, where no earlier answers are hidden.
 */

import { HIDDEN_WORDS, STATE_WORDS, describeModels, el, formatCount, formatProbability, kbd } from "./dom.js";

export const HISTORY_KEY = ";";
/** The row about it in the help of a page. @type {[string, string]} */
export const HISTORY_ROW = [HISTORY_KEY, "the image's history, and comments on it"];

const MAX_COMMENT_CHARACTERS = 2000; // letters of a comment, as the store keeps

/**
 * @typedef {{id: number, at: number, annotator: string, action: string, name: string, merged_into: string, state: number | null,
 *            note: string, source: string, about: string, score: number | null, models?: [string, number][], origin?: [string, string, number | null] | null, covered: string[], undone_by: string | null,
 *            undone_at: number | null, uuid?: string}} Event
 */

export class HistoryDialog {
  /**
   * @param {import("./session.js").Session} session
   * @param {{onComment: (item: any, note: string) => void, onRemove: (item: any, uuid: string, note: string) => void}} options
   */
  constructor(session, { onComment, onRemove }) {
    this.session = session;
    this.onComment = onComment;
    this.onRemove = onRemove;
    /** @type {any} whose history it is */
    this.item = null;
    this.title = el("h2", { id: "history-title" });
    this.list = el("ol", { tabindex: "0", "aria-label": "Answers, oldest first" });
    this.state = el("p", { class: "quiet", role: "status" });
    this.field = el("input", { type: "text", dir: "auto", "aria-label": "Comment", maxlength: MAX_COMMENT_CHARACTERS, placeholder: "Write a comment", autocomplete: "off" });
    this.element = el("dialog", { class: "history", "aria-labelledby": "history-title" },
      this.title, this.list, this.state,
      el("div", { class: "tools" },
        this.field,
        el("button", { type: "button", class: "main", onclick: () => this.comment() }, "Add comment", kbd("Enter")),
        el("button", { type: "button", onclick: () => this.element.close() }, "Close", kbd("Esc"))));
  }

  get isOpen() {
    return this.element.open;
  }

  /** @param {{id: number, name: string}} item */
  open(item) {
    this.item = item;
    this.title.replaceChildren("History of ", el("bdi", {}, item.name));
    this.field.value = "";
    this.list.replaceChildren();
    this.element.showModal();
    this.field.focus();
    this.load();
  }

  /** While it is open, it takes the keys that close it and save a comment. @param {string} key @param {KeyboardEvent} event */
  key(key, event) {
    const inField = event.composedPath()[0] === this.field;
    if (key === "Escape" || (key === HISTORY_KEY && !inField)) this.element.close();
    else if (key === "Enter" && inField) this.comment();
    else return false;
    return true;
  }

  comment() {
    const note = this.field.value.trim();
    if (!note) return;
    this.field.value = "";
    this.onComment(this.item, note);
    this.load();
  }

  /** Read it anew, once all waiting decisions are saved. */
  async load() {
    const { item } = this;
    this.#say("Loading...");
    await this.session.outbox.flush();
    try {
      const { decisions, hidden } = await this.session.api.post("/api/history", { image: item.id });
      if (item !== this.item) return;
      this.list.replaceChildren(...decisions.map((/** @type {Event} */ event) => this.#line(event)));
      this.list.scrollTop = this.list.scrollHeight;
      this.#say(hidden ? `${HIDDEN_WORDS}.` : decisions.length ? "" : "No answers on this image yet.");
    } catch (error) {
      if (item === this.item) this.#say(`The history cannot be shown: ${error.message}.`);
    }
  }

  /** @param {string} text */
  #say(text) {
    this.state.textContent = text;
    this.state.hidden = !text;
  }

  /** @param {Event} event */
  #line(event) {
    const undone = event.undone_by != null;
    const what = el(undone ? "s" : "bdi", undone ? { dir: "auto" } : {}, describeEvent(event));
    const line = el("li", { "data-action": event.action },
      el("div", {}, el("b", { dir: "auto" }, event.annotator), " ", el("span", { class: "quiet" }, formatTime(event.at)), " ", what),
      el("div", { class: "quiet" }, [
        ...listDetails(event),
        ...(undone ? [`undone by ${event.undone_by}, ${formatTime(event.undone_at ?? 0)}`] : []),
      ].join(" · ")));
    if (!event.uuid) return line;
    const { uuid, note } = event;
    line.append(el("button", { type: "button", onclick: () => {
      this.onRemove(this.item, uuid, note);
      this.load();
    } }, "Remove"));
    return line;
  }
}

/** @param {Event} event */
function describeEvent({ action, name, state, note, covered }) {
  if (action === "label") return `${name}: ${STATE_WORDS[state ?? ""] ?? state}`;
  if (action === "done") return `nothing else here: ${formatCount(covered.length, "class", "classes")} absent`;
  if (action === "flag") return note ? `flag: ${note}` : "flag removed";
  return { clear: `${name}: unanswered again`, comment: note, skip: "skipped" }[action] ?? action;
}

/** Where an answer came from, and what it covers. @param {Event} event */
function listDetails({ action, about, score, models, origin, covered, merged_into }) {
  if (action === "done") return covered.length ? [covered.join(", ")] : [];
  const original = origin ? [describeOrigin(origin)] : [];
  if (action !== "label" && action !== "clear") return original;
  return [
    about,
    ...original,
    ...(score == null ? [] : [`the model said ${formatProbability(score)}`]),
    ...(models?.length ? [describeModels(models)] : []),
    ...(merged_into ? [`counts for ${merged_into}`] : []),
  ];
}

/** Who decided it where it was imported from. @param {[string, string, number | null]} origin who ("": unknown), how, when */
function describeOrigin([who, how, at]) {
  return ["originally", ...(who ? [`by ${who}`] : []), ...(how ? [`(${how})`] : []), ...(at == null ? [] : [formatTime(at)])].join(" ");
}

/** "today 14:02", or the day and the time, by this browser's clock. @param {number} at unix seconds */
export function formatTime(at) {
  const time = new Date(at * 1000);
  const clock = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (time.toDateString() === new Date().toDateString()) return `today ${clock}`;
  return `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })} ${clock}`;
}

/** What stands behind an image's name: "2 comments", or nothing. @param {any} item */
export function formatCommentCount(item) {
  return item?.comments > 0 ? formatCount(item.comments, "comment") : "";
}
