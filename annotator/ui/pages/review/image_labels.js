// @ts-check
/** The labels of the image on screen, each with its annotator. */

import { STATE_WORDS, el } from "../shared/dom.js";

export class ImageLabels {
  /** @param {(id: number) => string} name of a class */
  constructor(name) {
    this.name = name;
    /** Whose labels are shown, and which. */
    this.item = this.labels = undefined;
    this.answers = "";
    this.complete = el("span", { class: "more" }, "complete");
    this.element = el("div", { class: "chips", role: "group", "aria-label": "Labels of this image" });
  }

  /** @param {any} item null: none  @param {string} me whose labels need no name */
  show(item, me) {
    const answers = (item?.suggestions ?? []).map((/** @type {any} */ chip) => chip.given ?? "").join();
    if (item !== this.item || item?.labels !== this.labels || answers !== this.answers) {
      this.element.replaceChildren(...(item ? this.#labels(item, me) : []), this.complete);
    }
    Object.assign(this, { item, labels: item?.labels, answers });
    this.complete.hidden = !item?.complete;
  }

  /** @param {any} item @param {string} me */
  #labels(item, me) {
    const labels = applyAnswers(item, me);
    const shown = labels.filter((label) => label.state !== -1);
    const absent = labels.filter((label) => label.state === -1);
    const chips = shown.map((label) => {
      const by = label.by && label.by !== me ? `· ${label.by}` : "";
      const more = [label.state === 0 ? "(unsure)" : "", by].filter(Boolean).map((words) => ` ${words}`);
      const title = `${STATE_WORDS[label.state]}, by ${label.by || "unknown"}`;
      return el("span", { class: "chip", "data-state": STATE_WORDS[label.state], title }, el("bdi", {}, this.name(label.class)), ...more);
    });
    const list = absent.map((label) => `${this.name(label.class)} (${label.by || "unknown"})`).join(", ");
    if (absent.length) chips.push(el("span", { class: "more", title: list }, `${absent.length} absent`));
    return chips.length ? chips : [el("span", { class: "more" }, "No labels yet")];
  }
}

/** The labels of an image, with what was answered on this page since it came. @param {any} item @param {string} me */
export function applyAnswers(item, me) {
  const given = item.suggestions.filter((/** @type {any} */ chip) => chip.given != null);
  const answered = new Set(given.map((/** @type {any} */ chip) => chip.class_id));
  return [
    ...item.labels.filter((/** @type {any} */ label) => !answered.has(label.class)),
    ...given.map((/** @type {any} */ chip) => ({ class: chip.class_id, state: chip.given, source: "suggestion", by: me })),
  ];
}
