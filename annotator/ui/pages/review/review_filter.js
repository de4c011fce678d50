// @ts-check
/** The filter of Review: class and probability of the suggestions, answers to be asked again, whose images. */

import { findMeantClass } from "../shared/class_search.js";
import { el, kbd } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

/**
 * @typedef {import("../shared/session.js").Class} Class
 * @typedef {"missing" | "likely_mistakes" | "annotator_disagreements"} Kind
 * @typedef {{class: number | null, from: number | null, to: number, kind: Kind, by: string}} Chosen
 * `from` and `to` in percent; from null: as low as the model itself suggests
 */
/** Beside missing labels: answers that are asked again, with the words and title of their button. @type {[Kind, string, string][]} */
const RELABEL_KINDS = [
  ["likely_mistakes", "Likely mistakes", "Answers that the model disagrees with"],
  ["annotator_disagreements", "People disagree", "Two people answered differently: your answer decides"],
];
const INSIDE_SCORE = 2; // of name_match.js: the letters stand together somewhere in the name
const DISAGREEMENT_KIND = "annotator_disagreements";
/** @type {Chosen} */
const EMPTY_FILTER = { class: null, from: null, to: 100, kind: "missing", by: "" };

export class ReviewFilter {
  /**
   * @param {{project: string, threshold: number, classes: Class[], annotators: string[], maySettle: boolean,
   *          onChange: () => void}} options  threshold: 0..1, from where on the model suggests
   */
  constructor({ project, threshold, classes, annotators, maySettle, onChange }) {
    this.store = `annotator:${project}:review-filter`;
    this.onChange = onChange;
    this.lowest = Math.round(threshold * 100);
    this.classes = classes;
    /** @type {Chosen} */
    this.chosen = { ...EMPTY_FILTER };
    this.relabelKinds = RELABEL_KINDS.filter(([kind]) => maySettle || kind !== DISAGREEMENT_KIND);
    this.#recall(annotators);
    // An address that leads here for it: Progress and the agreement page have one.
    if (maySettle && new URLSearchParams(window.location.search).has("settle")) this.chosen = { ...EMPTY_FILTER, kind: DISAGREEMENT_KIND };
    this.#build(annotators);
    this.setClasses(classes);
  }

  /** As the route wants it; without what is not chosen. */
  get request() {
    const { class: class_, from, to, kind, by } = this.chosen;
    return {
      ...(class_ == null ? {} : { class: class_ }),
      ...(from == null || this.relabels ? {} : { from: from / 100 }),
      ...(to === 100 || this.relabels ? {} : { to: to / 100 }),
      kind,
      ...(by ? { by } : {}),
    };
  }

  /** Whether answers are asked again, instead of missing labels. */
  get relabels() {
    return this.chosen.kind !== "missing";
  }

  /** Whether anything is kept out. */
  get active() {
    return JSON.stringify(this.chosen) !== JSON.stringify(EMPTY_FILTER);
  }

  /** @param {Class[]} classes */
  setClasses(classes) {
    this.classes = classes;
    this.names.replaceChildren(...classes.flatMap(({ name, synonyms }) => [
      el("option", { value: name }),
      ...synonyms.map((synonym) => el("option", { value: synonym }, `synonym of ${name}`)),
    ]));
    if (!classes.some((class_) => class_.id === this.chosen.class)) this.chosen.class = null;
    this.#tell();
  }

  /** The next key is for the name of a class. */
  focus() {
    this.#fold(true);
    this.field.focus();
    this.field.select();
  }

  clear() {
    this.#choose(EMPTY_FILTER);
  }

  /**
   * A key while somebody is in one of the fields. Enter takes what is typed, Escape what was there before; both give the
   * keys back to the page, and do nothing else.
   * @param {string} key @param {KeyboardEvent} event @returns {boolean} true when the key was ours
   */
  key(key, event) {
    this.pressed = event.altKey ? "" : key;
    const field = /** @type {HTMLElement} */ (event.composedPath()[0]);
    if (!this.fields.contains(field) || (key !== "Enter" && key !== "Escape")) return false;
    if (key === "Enter") this.#take(field);
    this.#leave(field);
    return true;
  }

  /** @param {string[]} annotators */
  #build(annotators) {
    this.names = el("datalist", { id: "filter-classes" });
    this.field = el("input", {
      type: "search", list: "filter-classes", placeholder: "Any class", autocomplete: "off", "aria-keyshortcuts": "f",
      onchange: () => this.#changed(this.field), onsearch: () => this.#changed(this.field),
    });
    const share = () => {
      const field = el("input", {
        type: "number", min: "1", max: "100", step: "1", inputmode: "numeric", onchange: () => this.#changed(field),
      });
      return field;
    };
    this.from = share();
    this.to = share();
    this.range = el("div", { class: "range" }, el("label", {}, el("span", {}, "From"), this.from),
      el("label", {}, el("span", {}, "to"), this.to), el("span", { "aria-hidden": "true" }, "%"));
    this.kinds = this.relabelKinds.map(([kind, words, title]) => ({
      kind,
      words,
      button: el("button", {
        type: "button", title, onclick: () => this.#choose({ kind: this.chosen.kind === kind ? "missing" : kind }),
      }, words),
    }));
    this.by = el("select", { onchange: () => this.#changed(this.by) },
      el("option", { value: "" }, "Everyone"),
      ...annotators.map((name) => el("option", { value: name }, name)));
    this.clearButton = el("button", { type: "button", onclick: () => this.clear() }, "Clear filter");
    this.fields = el("div", { class: "fields", id: "filter-fields" },
      el("span", { class: "named" }, el("label", {}, el("span", {}, "Class"), this.field), kbd("f")),
      this.names, this.range, ...this.kinds.map(({ button }) => button),
      el("label", {}, el("span", {}, "Person"), this.by), this.clearButton);
    this.opener = el("button", {
      type: "button", class: "opener", "aria-controls": "filter-fields", onclick: () => this.#fold(!this.isOpen),
    });
    this.element = el("section", { class: "filter", "aria-label": "Filter" }, this.opener, this.fields);
    this.element.addEventListener("pointerdown", () => {
      this.pressed = "";
    });
    /** The last key in a field; none: the pointer came later. */
    this.pressed = "";
    this.#fold(false);
  }

  /** A field has another value: by the pointer, from a list, or by its arrow keys. @param {HTMLElement} field */
  #changed(field) {
    this.#take(field);
    // Stepping through a field by keys, or going on to the next field, does not leave the filter.
    const steps = field !== this.field && /^(Arrow|Page|Home|End|.$)/.test(this.pressed);
    if (!steps && this.pressed !== "Tab") this.#leave(field);
  }

  /** Filter by what stands in this field. @param {HTMLElement} field */
  #take(field) {
    if (field === this.field) this.#choose({ class: findMeantClass(this.classes, this.field.value, INSIDE_SCORE)?.id ?? null });
    else if (field === this.by) this.#choose({ by: this.by.value });
    else this.#range(field === this.from ? "from" : "to");
  }

  /** The keys are the page's again. @param {HTMLElement} field */
  #leave(field) {
    this.#tell(); // first, so that losing the focus does not apply what was typed and not taken
    field.blur();
  }

  get isOpen() {
    return this.element.classList.contains("open");
  }

  /** On a phone only the word "Filter" is there until it is wanted. @param {boolean} open */
  #fold(open) {
    this.element.classList.toggle("open", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }

  /** @param {"from" | "to"} end */
  #range(end) {
    const value = Math.round(Math.min(100, Math.max(1, Number(this[end].value) || (end === "to" ? 100 : this.lowest))));
    const from = end === "from" ? value : (this.chosen.from ?? this.lowest);
    const to = end === "to" ? value : this.chosen.to;
    // The range must not be empty: the other end is moved.
    const [low, high] = end === "from" ? [from, Math.max(from, to)] : [Math.min(from, to), to];
    this.#choose({ from: low === this.lowest ? null : low, to: high });
  }

  /** @param {Partial<Chosen>} change */
  #choose(change) {
    const before = JSON.stringify(this.chosen);
    this.chosen = { ...this.chosen, ...change };
    this.#tell();
    if (JSON.stringify(this.chosen) === before) return;
    writeSetting(this.store, this.chosen);
    this.onChange();
  }

  #tell() {
    const { class: class_, from, to, by } = this.chosen;
    const name = this.classes.find((other) => other.id === class_)?.name ?? "";
    this.field.value = name;
    this.from.value = String(from ?? this.lowest);
    this.to.value = String(to);
    this.range.hidden = this.relabels;
    for (const { kind, button } of this.kinds) button.setAttribute("aria-pressed", String(kind === this.chosen.kind));
    this.by.value = by;
    this.clearButton.hidden = !this.active;
    const shares = from != null || to < 100 ? `${from ?? this.lowest} to ${to} %` : "";
    const chosenKind = this.kinds.find(({ kind }) => kind === this.chosen.kind)?.words.toLowerCase();
    const words = [name, chosenKind ?? shares, by];
    this.opener.replaceChildren(`Filter: ${words.filter(Boolean).join(", ") || "none"}`);
  }

  /** @param {string[]} annotators */
  #recall(annotators) {
    const kept = readSetting(this.store) ?? {};
    const parts = Object.entries(EMPTY_FILTER).map(([name, usual]) => [name, kept[name] ?? usual]);
    const restored = Object.fromEntries(parts); // nothing that an older version kept beside them
    const sound = restored.to >= 1 && restored.to <= 100 && (restored.from == null || (restored.from >= 1 && restored.from <= 100)) &&
      ["missing", ...this.relabelKinds.map(([kind]) => kind)].includes(restored.kind);
    if (sound) this.chosen = { ...restored, by: annotators.includes(restored.by) ? restored.by : "" };
  }
}
