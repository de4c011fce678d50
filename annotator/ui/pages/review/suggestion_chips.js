// @ts-check
/**
 * The suggestions of one image as a list: likeliest first, one of them selected, with the threshold between those that
 * are accepted all at once and the rest. Built before its image is on screen; then only what changes is touched.
 */

import { isHiddenChip } from "./heatmap_overlay.js";
import { STATE_WORDS, describeModels, el, formatProbability, kbd } from "../shared/dom.js";
import { formatTime } from "../shared/history.js";

/** Words for the answers to a suggestion, and to a cell that was answered before. */
const ANSWERED_WORDS = { 1: "accepted", "-1": "rejected", 0: "unsure" };
const ANSWER_WORDS = { 1: "Accept", "-1": "Reject", 0: "Unsure" };
const MISTAKE_ANSWER_WORDS = { 1: "Present", "-1": "Absent", 0: "Unsure" };
const ICON_PATHS = { 1: "M5 13l5 5L19 7", "-1": "M6 6l12 12M18 6L6 18" }; // in 24 x 24

export class SuggestionChips {
  /**
   * @param {any} item
   * @param {{name: (id: number) => string, onSelect: (at: number) => void,
   *          onAnswer: (at: number, state: number) => void}} page
   */
  constructor(item, { name, onSelect, onAnswer }) {
    this.item = item;
    this.at = -1;
    this.rows = item.suggestions.map((chip, at) => {
      const pick = el("button",
        { type: "button", class: "pick", "aria-keyshortcuts": at < 9 ? at + 1 : null, onclick: () => onSelect(at) },
        at < 9 ? kbd(String(at + 1)) : el("span"),
        el("span", { class: "name", dir: "auto" }, name(chip.class_id)),
        el("span", { class: "percent" }, chip.probability == null || isHiddenChip(item, chip) ? "" : formatProbability(chip.probability)));
      const hidden = isHiddenChip(item, chip);
      if (chip.models?.length && !hidden) pick.append(el("span", { class: "against models" }, describeModels(chip.models)));
      if (chip.said?.length) pick.append(...chip.said.map((voice) => el("span", { class: "against" }, describeVoice(voice))));
      if (chip.known != null && !hidden) pick.append(el("span", { class: "against" }, describeDisagreement(item, chip)));
      const said = el("span", { class: "said" });
      const answers = [1, -1].map((state) => el("button",
        { type: "button", class: state > 0 ? "yes" : "no", onclick: () => onAnswer(at, state),
          "aria-label": formatAnswer(chip, state, name(chip.class_id)) }, drawIcon(ICON_PATHS[state])));
      const bar = el("span", { class: "bar", "aria-hidden": "true" },
        el("span", { style: `width:${hidden ? 0 : Math.round((chip.probability ?? 0) * 100)}%` }));
      const kind = chip.known == null ? "suggestion" : "suggestion likely-mistake";
      const row = el("div", { class: kind, "data-class": chip.class_id }, pick,
        el("span", { class: "tail" }, bar, said, ...answers));
      row.addEventListener("focusin", () => at !== this.at && onSelect(at));
      row.addEventListener("pointermove", (event) => at !== this.at && hasPointerMoved(event) && onSelect(at));
      return { row, pick, said };
    });
    this.rows.forEach((_, at) => this.mark(at));
    this.marker = el("div", { class: "line", "aria-hidden": "true" });
    this.element = el("div", { class: "suggestions", role: "group", "aria-label": "Suggested labels" },
      ...this.rows.map(({ row }) => row));
    this.line = -1;
  }

  /** @param {number} at */
  select(at) {
    if (at === this.at) return;
    const before = this.rows[this.at];
    before?.row.classList.remove("selected");
    before?.pick.removeAttribute("aria-current");
    this.at = at;
    const now = this.rows[at];
    now?.row.classList.add("selected");
    now?.pick.setAttribute("aria-current", "true");
  }

  /** Show what was answered, or that nothing was. @param {number} at */
  mark(at) {
    const { given, known } = this.item.suggestions[at];
    const { row, said } = this.rows[at];
    row.dataset.given = given == null ? "" : STATE_WORDS[given];
    said.textContent = given == null ? "" : (known == null ? ANSWERED_WORDS : STATE_WORDS)[given];
  }

  /** @param {number} line 0..1 */
  drawThreshold(line) {
    if (line === this.line) return;
    this.line = line;
    const below = this.rows.find((_, at) => this.item.suggestions[at].probability < line);
    if (this.item.suggestions.some((chip) => chip.known != null)) return; // answered cells are asked one by one
    this.marker.textContent = `threshold ${formatPercent(line)}`;
    this.element.insertBefore(this.marker, below?.row ?? null);
  }

  /** Bring the selected one into view, where the list is longer than its room. */
  scrollToSelected() {
    this.rows[this.at]?.row.scrollIntoView({ block: "nearest" });
  }
}

/** What an answer is called. @param {any} chip @param {number} state @param {string} [name] of the class */
export function formatAnswer(chip, state, name = "") {
  const words = (chip?.known == null ? ANSWER_WORDS : MISTAKE_ANSWER_WORDS)[state];
  return name ? `${words}: ${name}` : words;
}

/** @param {string} lines */
function drawIcon(lines) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", lines);
  svg.append(path);
  return svg;
}

/** @param {number} share 0..1 */
export function formatPercent(share) {
  return `${Math.round(share * 100)}\u00a0%`;
}

/** "Ann said present; model: 3 %", or of a disagreement of people the second half. @param {any} item @param {any} chip */
function describeDisagreement(item, chip) {
  const model = chip.probability == null ? "no probability" : formatProbability(chip.probability);
  if (chip.said.length) return `model: ${model}`;
  const by = item.labels.find((label) => label.class === chip.class_id)?.by || "unknown";
  const person = `${by} said ${STATE_WORDS[chip.known]}`;
  return chip.probability == null ? person : `${person}; model: ${model}`;
}

/** "Ann said present, 3 Nov 2026 14:02, after 1.2 s". @param {[string, number, number, number | null]} voice */
function describeVoice([who, state, at, milliseconds]) {
  const pace = milliseconds == null ? "" : `, after ${(milliseconds / 1000).toFixed(1)} s`;
  return `${who} said ${STATE_WORDS[state]}, ${formatTime(at)}${pace}`;
}

let lastPlace = "";
/**
 * Whether the pointer itself moved: rows that come to lie under a resting one are not chosen by it.
 * @param {PointerEvent} event
 */
function hasPointerMoved(event) {
  const place = `${event.screenX},${event.screenY}`;
  const changed = lastPlace !== "" && place !== lastPlace;
  lastPlace = place;
  return changed && event.pointerType === "mouse";
}
