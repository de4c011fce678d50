// @ts-check
/** The fields that say which images are shown, and in which order. */

import { CLASS_KEYS, everything, filters } from "./address.js";
import { classMeant } from "../shared/classes.js";
import { el, kbd } from "../shared/dom.js";

/** @typedef {import("./address.js").View} View */

/** @type {[(typeof CLASS_KEYS)[number], string][]} */
const CLASS_WORDS = [["has", "has"], ["lacks", "lacks"], ["open", "unanswered"]];
/** @type {[string, string][]} */
const SORTS = [
  ["name", "Name"], ["decided", "Last change"], ["captured", "Capture time"], ["labels", "Number of labels"],
  ["probability", "Probability of"],
];

export class Filter {
  /**
   * @param {{classes: import("../shared/session.js").Class[], people: string[], sources: [string, string][], folders: string[],
   *          onChange: (view: View) => void, say: (text: string) => void}} options
   *   sources   name and words of each
   *   onChange  the person wants to see other images, or another order
   */
  constructor({ classes, people, sources, folders, onChange, say }) {
    this.onChange = onChange;
    this.say = say;
    this.view = everything();
    this.sources = new Set(sources.map(([name]) => name));
    this.#build(people, sources, folders);
    this.setClasses(classes);
  }

  /** @param {import("../shared/session.js").Class[]} classes */
  setClasses(classes) {
    this.classes = classes;
    this.names.replaceChildren(...classes.map((class_) => el("option", { value: class_.name })));
    this.#tell();
  }

  /** As the address says. @param {View} view */
  set(view) {
    this.view = view;
    if (!this.sources.has(view.source)) view.source = "";
    const known = new Set(this.classes.map((class_) => class_.name));
    const unknown = [...CLASS_KEYS.flatMap((key) => view[key]), ...(view.of ? [view.of] : [])].filter((name) => !known.has(name));
    if (unknown.length) this.say(`There is no class ${unknown.map((name) => `"${name}"`).join(", ")}; this part of the filter does nothing.`);
    this.#tell();
  }

  /** As the routes want it: classes by their ids. */
  get request() {
    const { view } = this;
    const ids = (/** @type {string[]} */ names) => names.flatMap((name) => this.classes.filter((class_) => class_.name === name).map(({ id }) => id));
    const { has, lacks, open, sort, of, down, ...rest } = view;
    const given = Object.entries(rest).filter(([, value]) => value !== "");
    const parts = given.map(([key, value]) => [key, key === "complete" || key === "flagged" ? value === "yes" : value]);
    const [class_] = ids([of]);
    return {
      filter: { has: ids(has), lacks: ids(lacks), open: ids(open), ...Object.fromEntries(parts) },
      sort: sort === "probability" && class_ == null ? "name" : sort,
      ...(sort === "probability" && class_ != null ? { class: class_ } : {}),
      down,
    };
  }

  /** Ids of the classes that the filter is about. */
  get about() {
    const names = new Set(CLASS_KEYS.flatMap((key) => this.view[key]));
    return this.classes.filter((class_) => names.has(class_.name)).map(({ id }) => id);
  }

  get active() {
    return filters(this.view);
  }

  /** The next key is for the name of a class. */
  focus() {
    this.#fold(true);
    this.classField.focus();
  }

  clear() {
    const { sort, of, down } = this.view;
    this.#choose({ ...everything(), sort, of, down });
  }

  /**
   * A key while somebody is in one of the fields: Enter takes what is typed, Escape what was there before; both give the
   * keys back to the page.
   * @param {string} key @param {KeyboardEvent} event @returns {boolean}
   */
  key(key, event) {
    const field = /** @type {HTMLElement} */ (event.composedPath()[0]);
    if ((key !== "Enter" && key !== "Escape") || !(this.element.contains(field) || this.order.contains(field))) return false;
    if (key === "Enter") this.#take(field);
    this.#tell(); // first, so that losing the focus does not take what was typed
    field.blur();
    return true;
  }

  /** @param {string[]} people @param {[string, string][]} sources @param {string[]} folders */
  #build(people, sources, folders) {
    const taking = () => {
      const take = (/** @type {Event} */ event) => this.#take(/** @type {HTMLElement} */ (event.target));
      return { onchange: take, onsearch: take };
    };
    const select = (/** @type {string} */ label, /** @type {[string, string][]} */ options) =>
      el("select", { "aria-label": label, ...taking() }, ...options.map(([value, words]) => el("option", { value }, words)));
    const input = (/** @type {string} */ type, /** @type {string} */ label, more = {}) =>
      el("input", { type, "aria-label": label, autocomplete: "off", ...more, ...taking() });
    this.names = el("datalist", { id: "gallery-classes" });
    this.classKind = select("Images by class", CLASS_WORDS);
    this.classField = input("search", "Class", { list: "gallery-classes", placeholder: "class", "aria-keyshortcuts": "/" });
    this.of = input("search", "Class whose probability is sorted by", { list: "gallery-classes", placeholder: "class" });
    /** Fields by the part of the view that they hold. @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
    this.fields = {
      name: input("search", "File name", { placeholder: "file name" }),
      complete: select("Complete or not", [["", "complete or not"], ["yes", "complete"], ["no", "not complete"]]),
      flagged: select("Flagged or not", [["", "flagged or not"], ["yes", "flagged"], ["no", "not flagged"]]),
      source: select("Where labels come from", [["", "any source"], ...sources]),
      by: select("Person", [["", "everyone"], .../** @type {[string, string][]} */ (people.map((name) => [name, name]))]),
      folder: input("search", "Folder", { placeholder: "folder", list: "gallery-folders" }),
      from: input("date", "From this day"),
      to: input("date", "To this day"),
      sort: select("Order", SORTS),
    };
    const { name, complete, flagged, source, by, folder, from, to, sort } = this.fields;
    this.direction = el("button", { type: "button", class: "direction", onclick: () => this.#choose({ down: !this.view.down }) });
    this.order = el("div", { class: "order" }, el("label", {}, el("span", { class: "quiet" }, "Order"), sort), this.of, this.direction);
    this.chips = el("div", { class: "conditions", role: "group", "aria-label": "Classes of the filter" });
    this.clearButton = el("button", { type: "button", onclick: () => this.clear() }, "Clear filter");
    this.moreButton = el("button", { type: "button", "aria-controls": "gallery-more", onclick: () => this.#unfold(this.more.hidden) });
    this.more = el("div", { class: "fields more-fields", id: "gallery-more", hidden: true }, source, by, folder,
      el("datalist", { id: "gallery-folders" }, ...folders.map((value) => el("option", { value }))),
      el("label", {}, el("span", { class: "quiet" }, "Changed from"), from), el("label", {}, el("span", { class: "quiet" }, "to"), to));
    this.opener = el("button", { type: "button", class: "opener", "aria-controls": "gallery-fields", onclick: () => this.#fold(!this.isOpen) });
    this.element = el("section", { class: "filter", "aria-label": "Filter" }, this.opener,
      el("div", { class: "fields", id: "gallery-fields" },
        el("span", { class: "by-class" }, this.classKind, this.classField, kbd("/")), this.names, name, complete, flagged, this.moreButton,
        this.chips, this.clearButton),
      this.more);
    this.#fold(false);
    this.#unfold(false);
  }

  get isOpen() {
    return this.element.classList.contains("open");
  }

  /** On a phone only the word "Filter" is there until it is wanted. @param {boolean} open */
  #fold(open) {
    this.element.classList.toggle("open", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }

  /** @param {boolean} open */
  #unfold(open) {
    this.more.hidden = !open;
    this.moreButton.setAttribute("aria-expanded", String(open));
    this.moreButton.textContent = open ? "Less" : "More";
  }

  /** Filter by what stands in this field. @param {HTMLElement} field */
  #take(field) {
    if (field === this.classField) this.#addClass();
    else if (field === this.of) this.#choose({ of: classMeant(this.classes, this.of.value)?.name ?? "" });
    else {
      const [key] = Object.entries(this.fields).find(([, other]) => other === field) ?? [];
      if (key) this.#choose({ [key]: this.fields[key].value.trim() });
    }
  }

  #addClass() {
    if (!this.classField.value.trim()) return;
    const name = classMeant(this.classes, this.classField.value)?.name;
    if (!name) {
      this.say("No matching class.");
      return;
    }
    this.classField.value = "";
    const kind = /** @type {(typeof CLASS_KEYS)[number]} */ (this.classKind.value);
    const others = Object.fromEntries(CLASS_KEYS.map((key) => [key, this.view[key].filter((other) => other !== name)]));
    this.#choose({ ...others, [kind]: [...others[kind], name] });
  }

  /** @param {Partial<View>} change */
  #choose(change) {
    const before = JSON.stringify(this.view);
    this.view = { ...this.view, ...change };
    this.#tell();
    if (JSON.stringify(this.view) !== before) this.onChange(this.view);
  }

  #tell() {
    const { view } = this;
    for (const [key, field] of Object.entries(this.fields)) {
      if (view[key] && field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === view[key])) {
        field.append(el("option", { value: view[key] }, view[key])); // from an old address
      }
      field.value = view[key];
    }
    this.of.value = view.of;
    this.of.hidden = view.sort !== "probability";
    this.direction.textContent = view.down ? "↓" : "↑";
    this.direction.setAttribute("aria-label", view.down ? "Descending; change to ascending" : "Ascending; change to descending");
    this.direction.title = view.down ? "Descending" : "Ascending";
    this.clearButton.hidden = !filters(view);
    this.chips.replaceChildren(...CLASS_WORDS.flatMap(([key, words]) => view[key].map((name) => el("button", {
      type: "button", class: "condition", title: "Remove this condition",
      onclick: () => this.#choose({ [key]: view[key].filter((other) => other !== name) }),
    }, `${words} ${name}`, el("span", { "aria-hidden": "true" }, "×")))));
    const chosen = [
      ...CLASS_WORDS.flatMap(([key, words]) => view[key].map((name) => `${words} ${name}`)), view.name,
      ...(["complete", "flagged"]).map((key) => view[key] && (view[key] === "yes" ? key : `not ${key}`)),
      ...(["source", "by", "folder", "from", "to"]).map((key) => view[key]),
    ].filter(Boolean);
    this.opener.replaceChildren(`Filter: ${chosen.join(", ") || "all images"}`);
    if (["source", "by", "folder", "from", "to"].some((key) => view[key])) this.#unfold(true);
  }
}
