// @ts-check
/** The fields that say which images are shown, and in which order: one for each filter that the server knows. */

import { COLUMN_PREFIX, GalleryAddress, formatField, hasFilters, isList, parseField, parseRange, parseSort } from "./gallery_address.js";
import { RangeField } from "./range_field.js";
import { findMeantClass } from "../shared/class_search.js";
import { el, kbd } from "../shared/dom.js";

/** @typedef {import("./gallery_address.js").View} View @typedef {import("./gallery_address.js").Condition} Condition */
/** @typedef {import("./gallery_address.js").Sort} Sort */

/** What a route is given for a filter. @param {string} kind @param {string} value */
function encodeValue(kind, value) {
  if (kind === "switch") return value === "yes";
  if (kind === "days") return parseRange(value).map((end) => end || null);
  if (kind === "range") return parseRange(value).map((end) => (end ? Number(end) : null));
  return value;
}

export class FilterBar {
  /**
   * @param {{classes: import("../shared/session.js").Class[], conditions: Condition[], sorts: Sort[],
   *          facts: Record<string, string[]>,
   *          onChange: (view: View) => void, say: (text: string) => void, nameOf: (example: string) => Promise<string>}} options
   *   conditions   the filters
   *   sorts        the orders
   *   facts        values of each imported fact, which are proposed
   *   onChange     the person wants to see other images, or another order
   *   nameOf       what an example is, in words
   */
  constructor({ classes, conditions, sorts, facts, onChange, say, nameOf }) {
    this.onChange = onChange;
    this.say = say;
    this.nameOf = nameOf;
    this.conditions = conditions;
    this.sorts = sorts;
    this.ofClasses = conditions.filter((one) => one.kind === "classes");
    this.ofFacts = conditions.find((one) => one.kind === "facts");
    this.facts = facts;
    this.address = new GalleryAddress(conditions, sorts);
    this.view = this.address.everything();
    this.#build();
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
    for (const { name, fixed, choices } of this.conditions) {
      if (fixed && !choices.some(([value]) => value === view.given[name])) view.given[name] = "";
    }
    const known = new Set(this.classes.map((class_) => class_.name));
    const named = [...this.ofClasses.flatMap(({ name }) => view.lists[name]), ...(view.of ? [view.of] : [])];
    const unknown = named.filter((name) => !known.has(name));
    if (unknown.length) this.say(`There is no class ${unknown.map((name) => `"${name}"`).join(", ")}; this part of the filter does nothing.`);
    this.#tell();
  }

  /** As the routes want it: classes by their ids. */
  get request() {
    return this.#requestOf(this.view);
  }

  /** The same without what is given of a fact. @param {string} fact */
  requestBut(fact) {
    return this.#requestOf({ ...this.view, ...this.#giving(fact, "") });
  }

  /** What is given of a fact, "" where nothing is. @param {string} name */
  givenOf(name) {
    if (!name.startsWith(COLUMN_PREFIX)) return this.view.given[name] ?? "";
    return this.#factsListed().find(([column]) => column === name.slice(COLUMN_PREFIX.length))?.[1] ?? "";
  }

  /** Filter by a value of a fact. @param {string} name @param {string} value "": by none */
  give(name, value) {
    this.#choose(this.#giving(name, value));
  }

  /** @param {string} name @param {string} value @returns {Partial<View>} */
  #giving(name, value) {
    if (!name.startsWith(COLUMN_PREFIX)) return { given: { ...this.view.given, [name]: value } };
    const column = name.slice(COLUMN_PREFIX.length);
    const others = this.#factsListed().filter(([other]) => other !== column);
    const listed = (value ? [...others, [column, value]] : others).map(([one, given]) => formatField(one, given));
    return { lists: { ...this.view.lists, ...(this.ofFacts ? { [this.ofFacts.name]: listed } : {}) } };
  }

  #factsListed() {
    return this.ofFacts ? this.view.lists[this.ofFacts.name].map(parseField) : [];
  }

  /** The facts that any image has, as name and label. @returns {[string, string][]} */
  get factNames() {
    const columns = this.sorts.filter(({ name }) => name.startsWith(COLUMN_PREFIX));
    return [...this.conditions.filter((one) => one.fact), ...columns].map(({ name, label }) => [name, label]);
  }

  /** @param {View} view */
  #requestOf({ lists, given, sort, of, like, example, down }) {
    const ids = (/** @type {string[]} */ names) => names.flatMap((name) => this.classes.filter((class_) => class_.name === name).map(({ id }) => id));
    /** @type {Record<string, any>} */
    const asked = {};
    for (const { name, kind } of this.conditions) {
      if (kind === "classes") asked[name] = ids(lists[name]);
      else if (kind === "facts") asked[name] = lists[name].map(parseField);
      else if (given[name] !== "") asked[name] = encodeValue(kind, given[name]);
    }
    const [class_] = ids([of]);
    return {
      filter: asked,
      ...parseSort((sort === "probability" && class_ == null) || (sort === "like" && !like && !example) ? "name" : sort),
      ...(sort === "like" && example ? { example } : sort === "like" && like ? { like: like.split(",").map(Number) } : {}),
      ...(sort === "probability" && class_ != null ? { class: class_ } : {}),
      down,
    };
  }

  /** Ids of the classes that the filter is about. */
  get about() {
    const names = new Set(this.ofClasses.flatMap(({ name }) => this.view.lists[name]));
    return this.classes.filter((class_) => names.has(class_.name)).map(({ id }) => id);
  }

  /** The one class on which the images are unanswered; undefined where there is none, or several. */
  get openClass() {
    const names = this.view.lists.open ?? [];
    return names.length === 1 ? this.classes.find(({ name }) => name === names[0]) : undefined;
  }

  /** Whether answers or the worker may bring an image into the list, take it out, or move it. */
  get changes() {
    const { sort } = this.request;
    return this.sorts.some(({ name, changes }) => changes && name === sort) || this.conditions.some(({ name, changes }) => changes && (this.view.given[name] || this.view.lists[name]?.length));
  }

  get active() {
    return hasFilters(this.view);
  }

  /** The next key is for the name of a class. */
  focus() {
    this.#fold(true);
    this.classField.focus();
  }

  /** Only images that have twins, each beside its own. */
  showTwins() {
    this.#choose({ sort: "twins", down: false, given: { ...this.view.given, twins: "has" } });
  }

  /** Those most like these images come first, of all that the filter shows. @param {number[]} ids */
  showLike(ids) {
    this.#choose({ sort: "like", like: ids.join(), example: "", down: false });
  }

  /** Those most like this example come first, of all that the filter shows. @param {string} example an id (example_dialog.js) */
  showExample(example) {
    this.#choose({ sort: "like", like: "", example, down: false });
  }

  clear() {
    const { sort, of, like, example, down } = this.view;
    this.#choose({ ...this.address.everything(), sort, of, like, example, down });
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

  #build() {
    this.names = el("datalist", { id: "gallery-classes" });
    this.classKind = this.#select("Images by class", this.ofClasses.map(({ name, label }) => [name, label]));
    this.classField = this.#input("search", "Class", { list: "gallery-classes", placeholder: "class", "aria-keyshortcuts": "/" });
    this.of = this.#input("search", "Class whose probability is sorted by", { list: "gallery-classes", placeholder: "class" });
    this.sort = this.#select("Order", this.sorts.map(({ name, label }) => [name, label]));
    /** Fields by the filter that they are of. @type {Record<string, HTMLInputElement | HTMLSelectElement | RangeField>} */
    this.fields = {};
    /** Of facts: fields that are there once they are chosen, or given. @type {Record<string, HTMLElement[]>} */
    this.factParts = {};
    /** Facts that were chosen. @type {Set<string>} */
    this.chosenFacts = new Set();
    /** @type {HTMLElement[]} */
    const front = [];
    /** @type {HTMLElement[]} */
    const behind = [];
    for (const condition of this.conditions.filter((one) => !isList(one))) {
      const field = (this.fields[condition.name] = this.#field(condition));
      const parts = field instanceof RangeField ? [field.element]
        : condition.kind === "day" ? [el("label", {}, el("span", { class: "quiet" }, condition.label), field)] : [/** @type {HTMLElement} */ (field)];
      if (condition.kind === "text" && condition.choices.length) parts.push(this.#proposals(condition.name, condition.choices.map(([value]) => value)));
      if (condition.fact) this.factParts[condition.name] = parts;
      else (condition.front ? front : behind).push(...parts);
    }
    const ofFacts = this.conditions.filter(({ fact }) => fact).map(({ name, label }) => /** @type {[string, string]} */ ([name, label]));
    this.factSelect = this.#select("Fact to filter by", [["", "fact..."], ...ofFacts]);
    if (ofFacts.length) behind.push(this.factSelect, ...Object.values(this.factParts).flat());
    if (this.ofFacts) behind.push(this.#factFields(this.ofFacts));
    this.direction = el("button", { type: "button", class: "direction", onclick: () => this.#choose({ down: !this.view.down }) });
    this.example = el("span", { class: "quiet of-example", hidden: true });
    this.order = el("div", { class: "order" }, el("label", {}, el("span", { class: "quiet" }, "Order"), this.sort), this.of, this.example, this.direction);
    this.chips = el("div", { class: "conditions", role: "group", "aria-label": "Classes and facts of the filter" });
    this.clearButton = el("button", { type: "button", onclick: () => this.clear() }, "Clear filter");
    this.moreButton = el("button", { type: "button", "aria-controls": "gallery-more", onclick: () => this.#unfold(this.more.hidden) });
    this.more = el("div", { class: "fields more-fields", id: "gallery-more", hidden: true }, ...behind);
    this.opener = el("button", { type: "button", class: "opener", "aria-controls": "gallery-fields", onclick: () => this.#fold(!this.isOpen) });
    this.element = el("section", { class: "filter", "aria-label": "Filter" }, this.opener,
      el("div", { class: "fields", id: "gallery-fields" },
        el("span", { class: "by-class" }, this.classKind, this.classField, kbd("/")), this.names, ...front, this.moreButton,
        this.chips, this.clearButton),
      this.more);
    this.#fold(false);
    this.#unfold(false);
  }

  #taking() {
    const take = (/** @type {Event} */ event) => this.#take(/** @type {HTMLElement} */ (event.target));
    return { onchange: take, onsearch: take };
  }

  /** @param {string} label @param {[string, string][]} options */
  #select(label, options) {
    return el("select", { "aria-label": label, ...this.#taking() }, ...options.map(([value, words]) => el("option", { value }, words)));
  }

  /** @param {string} type @param {string} label */
  #input(type, label, more = {}) {
    return el("input", { type, "aria-label": label, autocomplete: "off", ...more, ...this.#taking() });
  }

  /** @param {string} name of the filter @param {string[]} values */
  #proposals(name, values) {
    return el("datalist", { id: `gallery-${name}` }, ...values.map((value) => el("option", { value })));
  }

  /** The field of a filter that takes one value. @param {Condition} condition */
  #field({ name, label, kind, unit, choices }) {
    const any = label.toLowerCase();
    if (kind === "days" || kind === "range") return new RangeField(label, kind, unit, this.#taking());
    if (kind === "switch") return this.#select(label, [["", `${label} or not`], ["yes", label], ["no", `not ${label}`]]);
    if (kind === "choice") return this.#select(label, [["", `${any}: any`], ...choices]);
    if (kind === "day") return this.#input("date", label);
    return this.#input("search", label, { placeholder: any, ...(choices.length ? { list: `gallery-${name}` } : {}) });
  }

  /** Imported facts: which one, and its value. @param {Condition} condition */
  #factFields({ name, label, choices }) {
    this.factName = this.#select(label, [["", `${label.toLowerCase()}...`], ...choices]);
    this.factValue = this.#input("search", "Value of the fact", { placeholder: "value", list: `gallery-${name}`, disabled: true });
    this.factValues = this.#proposals(name, []);
    return el("span", { class: "by-class" }, this.factName, this.factValue, this.factValues);
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
    else if (field === this.of) this.#choose({ of: findMeantClass(this.classes, this.of.value)?.name ?? "" });
    else if (field === this.sort && this.sort.value === "like" && !this.view.like && !this.view.example) {
      this.say("Select an image and press S, or press F for words or a picture: those like it come first.");
      this.#tell();
    } else if (field === this.factSelect) this.#revealFact(this.factSelect.value);
    else if (field === this.sort) this.#choose({ sort: this.sort.value });
    else if (field === this.factName) this.#proposeValues();
    else if (field === this.factValue) this.#addFact();
    else {
      const [name] = Object.entries(this.fields).find(([, other]) => other === field || (other instanceof RangeField && other.holds(field))) ?? [];
      if (name) this.#choose({ given: { ...this.view.given, [name]: this.fields[name].value.trim() } });
    }
  }

  #addClass() {
    if (!this.classField.value.trim()) return;
    const name = findMeantClass(this.classes, this.classField.value)?.name;
    if (!name) {
      this.say("No matching class.");
      return;
    }
    this.classField.value = "";
    const { lists } = this.view;
    const others = Object.fromEntries(this.ofClasses.map((one) => [one.name, lists[one.name].filter((other) => other !== name)]));
    this.#choose({ lists: { ...lists, ...others, [this.classKind.value]: [...others[this.classKind.value], name] } });
  }

  /** Show the field of a fact, for its value to be given. @param {string} name */
  #revealFact(name) {
    this.factSelect.value = "";
    if (!name) return;
    this.chosenFacts.add(name);
    this.#tell();
    const field = this.fields[name];
    (field instanceof RangeField ? field.ends[0] : field).focus();
  }

  #proposeValues() {
    if (!this.factName || !this.factValue) return;
    const { value } = this.factName;
    this.factValue.disabled = !value;
    this.factValues?.replaceChildren(...(this.facts[value] ?? []).map((one) => el("option", { value: one })));
    if (value) this.factValue.focus();
  }

  #addFact() {
    if (!this.ofFacts || !this.factName?.value || !this.factValue?.value.trim()) return;
    const { name } = this.ofFacts;
    const added = formatField(this.factName.value, this.factValue.value.trim());
    this.factValue.value = "";
    this.#choose({ lists: { ...this.view.lists, [name]: [...new Set([...this.view.lists[name], added])] } });
  }

  /** @param {Partial<View>} change */
  #choose(change) {
    const before = JSON.stringify(this.view);
    this.view = { ...this.view, ...change };
    this.#tell();
    if (JSON.stringify(this.view) !== before) this.onChange(this.view);
  }

  /** What all images are compared with, where that is no image of the project. */
  async #tellExample() {
    const { example, sort } = this.view;
    this.example.hidden = sort !== "like" || !example;
    if (this.example.hidden || this.example.dataset.of === example) return;
    this.example.dataset.of = example;
    this.example.textContent = "";
    const words = await this.nameOf(example);
    if (this.view.example !== example) return;
    this.example.textContent = words;
    this.example.title = words;
  }

  /** What is in the lists, each with its words. @returns {[string, string, string][]} filter, value, words */
  #listed() {
    return this.conditions.filter(isList).flatMap(({ name, kind, label }) => this.view.lists[name].map(
      (value) => /** @type {[string, string, string]} */ ([name, value, kind === "facts" ? parseField(value).join(" = ") : `${label} ${value}`])));
  }

  #tell() {
    const { view } = this;
    for (const [name, field] of Object.entries(this.fields)) {
      const value = view.given[name];
      if (value && field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value)) {
        field.append(el("option", { value }, value)); // from an old address
      }
      field.value = value;
      if (field instanceof HTMLSelectElement) field.title = value ? field.selectedOptions[0].text : ""; // longer than the field
    }
    for (const [name, parts] of Object.entries(this.factParts)) {
      for (const part of parts) part.hidden = !view.given[name] && !this.chosenFacts.has(name);
    }
    this.sort.value = view.sort;
    this.of.value = view.of;
    this.of.hidden = view.sort !== "probability";
    this.#tellExample();
    this.direction.textContent = view.down ? "↓" : "↑";
    this.direction.setAttribute("aria-label", view.down ? "Descending; change to ascending" : "Ascending; change to descending");
    this.direction.title = view.down ? "Descending" : "Ascending";
    this.clearButton.hidden = !hasFilters(view);
    this.chips.replaceChildren(...this.#listed().map(([name, value, words]) => el("button", {
      type: "button", class: "condition", dir: "auto", title: "Remove this condition",
      onclick: () => this.#choose({ lists: { ...view.lists, [name]: view.lists[name].filter((other) => other !== value) } }),
    }, words, el("span", { "aria-hidden": "true" }, "×"))));
    const single = this.conditions.filter(({ name }) => view.given[name]);
    const chosen = [
      ...this.#listed().map(([, , words]) => words),
      ...single.map(({ name, label, kind, choices }) => (kind === "switch" ? (view.given[name] === "yes" ? label : `not ${label}`)
        : kind === "range" || kind === "days" ? `${label} ${view.given[name]}` : choices.find(([value]) => value === view.given[name])?.[1].split(":")[0] ?? view.given[name])),
    ];
    this.opener.replaceChildren(`Filter: ${chosen.join(", ") || "all images"}`);
    const behind = this.conditions.filter(({ front, kind }) => !front && kind !== "classes");
    if (behind.some(({ name }) => view.given[name] || view.lists[name]?.length)) this.#unfold(true);
  }
}
