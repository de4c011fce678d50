// @ts-check
/** Which suggestions are looked through: of which class and probability, against a person's word, on whose images. */

import { el, kbd } from "../shared/dom.js";

/**
 * @typedef {{class: number | null, from: number | null, to: number, mistakes: boolean, by: string}} Chosen
 * `from` and `to` in percent; from null: as low as the model itself suggests
 */
/** @type {Chosen} */
const EVERYTHING = { class: null, from: null, to: 100, mistakes: false, by: "" };

export class Filter {
  /**
   * @param {{project: string, threshold: number, classes: {id: number, name: string}[], annotators: string[],
   *          onChange: () => void}} options  threshold: 0..1, from where on the model suggests
   */
  constructor({ project, threshold, classes, annotators, onChange }) {
    this.store = `annotator:${project}:review-filter`;
    this.onChange = onChange;
    this.lowest = Math.round(threshold * 100);
    this.classes = classes;
    /** @type {Chosen} */
    this.chosen = { ...EVERYTHING };
    this.#recall(annotators);
    this.#build(annotators);
    this.setClasses(classes);
  }

  /** As the route wants it; without what is not chosen. */
  get request() {
    const { class: one, from, to, mistakes, by } = this.chosen;
    return {
      ...(one == null ? {} : { class: one }),
      ...(from == null || mistakes ? {} : { from: from / 100 }),
      ...(to === 100 || mistakes ? {} : { to: to / 100 }),
      kind: mistakes ? "disagreements" : "missing",
      ...(by ? { by } : {}),
    };
  }

  /** Whether anything is kept out. */
  get active() {
    return JSON.stringify(this.chosen) !== JSON.stringify(EVERYTHING);
  }

  /** @param {{id: number, name: string}[]} classes */
  setClasses(classes) {
    this.classes = classes;
    this.names.replaceChildren(...classes.map((one) => el("option", { value: one.name })));
    if (!classes.some((one) => one.id === this.chosen.class)) this.chosen.class = null;
    this.#tell();
  }

  /** The next key is for the name of a class. */
  focus() {
    this.#fold(true);
    this.field.focus();
    this.field.select();
  }

  clear() {
    this.#choose(EVERYTHING);
  }

  /** @param {string[]} annotators */
  #build(annotators) {
    this.names = el("datalist", { id: "filter-classes" });
    this.field = el("input", {
      type: "search", list: "filter-classes", placeholder: "any class", autocomplete: "off", "aria-keyshortcuts": "/",
      onchange: () => this.#choose({ class: this.#named(this.field.value) }),
    });
    const share = (/** @type {"from" | "to"} */ end) => el("input", {
      type: "number", min: "1", max: "100", step: "1", inputmode: "numeric", onchange: () => this.#range(end),
    });
    this.from = share("from");
    this.to = share("to");
    this.range = el("div", { class: "range" }, el("label", {}, el("span", {}, "From"), this.from),
      el("label", {}, el("span", {}, "to"), this.to), el("span", { "aria-hidden": "true" }, "%"));
    this.mistakes = el("button", {
      type: "button", title: "Answers of people that the model is sure are wrong",
      onclick: () => this.#choose({ mistakes: !this.chosen.mistakes }),
    }, "Likely mistakes");
    this.by = el("select", { onchange: () => this.#choose({ by: this.by.value }) },
      el("option", { value: "" }, "anybody's images"),
      ...annotators.map((name) => el("option", { value: name }, name)));
    this.clearButton = el("button", { type: "button", onclick: () => this.clear() }, "Clear the filter");
    this.fields = el("div", { class: "fields", id: "filter-fields" },
      el("span", { class: "named" }, el("label", {}, el("span", {}, "Class"), this.field), kbd("/")),
      this.names, this.range, this.mistakes,
      el("label", {}, el("span", {}, "Person"), this.by), this.clearButton);
    this.opener = el("button", {
      type: "button", class: "opener", "aria-controls": "filter-fields", onclick: () => this.#fold(!this.isOpen),
    });
    this.element = el("section", { class: "filter", "aria-label": "Filter" }, this.opener, this.fields);
    this.#fold(false);
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
    // An empty range would only be a puzzle: the end that was not touched gives way.
    const [low, high] = end === "from" ? [from, Math.max(from, to)] : [Math.min(from, to), to];
    this.#choose({ from: low === this.lowest ? null : low, to: high });
  }

  /** The class that is called this, or begins with it, or has it in its name. @param {string} typed */
  #named(typed) {
    const wanted = typed.trim().toLowerCase();
    if (!wanted) return null;
    const all = this.classes.map((one) => ({ one, at: one.name.toLowerCase().indexOf(wanted) }));
    const places = all.filter(({ at }) => at >= 0);
    places.sort((a, b) => a.at - b.at || a.one.name.length - b.one.name.length);
    return places[0]?.one.id ?? null;
  }

  /** @param {Partial<Chosen>} change */
  #choose(change) {
    const before = JSON.stringify(this.chosen);
    this.chosen = { ...this.chosen, ...change };
    this.#tell();
    if (JSON.stringify(this.chosen) === before) return;
    try {
      localStorage.setItem(this.store, JSON.stringify(this.chosen));
    } catch {
      // Then a reload begins without a filter.
    }
    this.onChange();
  }

  #tell() {
    const { class: one, from, to, mistakes, by } = this.chosen;
    const name = this.classes.find((other) => other.id === one)?.name ?? "";
    this.field.value = name;
    this.from.value = String(from ?? this.lowest);
    this.to.value = String(to);
    this.range.hidden = mistakes;
    this.mistakes.setAttribute("aria-pressed", String(mistakes));
    this.by.value = by;
    this.clearButton.hidden = !this.active;
    const shares = from != null || to < 100 ? `${from ?? this.lowest} to ${to} %` : "";
    const words = [name, mistakes ? "likely mistakes" : shares, by];
    this.opener.replaceChildren(`Filter: ${words.filter(Boolean).join(", ") || "everything"}`);
  }

  /** @param {string[]} annotators */
  #recall(annotators) {
    try {
      const kept = { ...EVERYTHING, ...JSON.parse(localStorage.getItem(this.store) ?? "{}") };
      const sound = kept.to >= 1 && kept.to <= 100 && (kept.from == null || (kept.from >= 1 && kept.from <= 100));
      if (sound) this.chosen = { ...kept, by: annotators.includes(kept.by) ? kept.by : "" };
    } catch {
      // What cannot be read is as if it had never been kept.
    }
  }
}
