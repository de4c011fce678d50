// @ts-check
/**
 * What the gallery shows, as it stands in the address: so a reload, the browser's own "back" and a copied link show the
 * same images. Classes are named, as people know them. Which filters and orders there are, the server says
 * (snapshot/filters.py, snapshot/sorts.py).
 */

/**
 * @typedef {{name: string, label: string, kind: "classes" | "switch" | "choice" | "text" | "day" | "days" | "range" | "facts",
 *            front: boolean, fact: boolean, changes: boolean, fixed: boolean, unit: string, choices: [string, string][]}} Condition
 *   a filter; changes: what it shows changes while people answer and the worker works; choices: values with their words;
 *   fixed: there are no other values; unit: of a range; fact: of a fact of images
 * @typedef {{name: string, label: string, changes: boolean}} Sort  an order; changes: as of a filter
 * @typedef {{lists: Record<string, string[]>, given: Record<string, string>, sort: string, of: string, like: string, example: string, down: boolean}} View
 *   lists   of filters of kind classes the names of classes; of kind facts what formatField returns; all of them count
 *   given   of all other filters what is given; of a switch "yes" or "no", of days and a range "from..to"; "": not filtered by it
 *   sort    the name of an order (snapshot/sorts.py), or "column:" and the name of an imported column
 *   of      the class whose probability is sorted by
 *   like    the ids of the images that all are compared with, "7,12"
 *   example  the id of what else they are compared with (example_dialog.js), instead of like
 */

export const DEFAULT_SORT = "name";
export const RANGE_SEPARATOR = ".."; // between the ends of a range
export const COLUMN_PREFIX = "column:"; // before the name of an imported column
const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}$/;
const NUMBER_PATTERN = /^-?\d{1,15}(\.\d+)?$/;

/** The ends of a range, "" where it has none. @param {string} value @returns {[string, string]} */
export function parseRange(value) {
  const [from, to = ""] = value.split(RANGE_SEPARATOR);
  return [from, to];
}

/** A range with these ends. @param {string} from @param {string} to */
export const formatRange = (from, to) => (from || to ? from + RANGE_SEPARATOR + to : "");

/** What is given to a filter, without what nobody could have given. @param {string} kind @param {string} value */
export function cleanValue(kind, value) {
  if (kind === "switch") return ["yes", "no"].includes(value) ? value : "";
  if (kind === "day") return DAY_PATTERN.test(value) ? value : "";
  if (kind !== "days" && kind !== "range") return value;
  const form = kind === "days" ? DAY_PATTERN : NUMBER_PATTERN;
  const [from, to] = parseRange(value).map((end) => (form.test(end) ? end : ""));
  return formatRange(from, to);
}

/** The order as the routes want it. @param {string} sort @returns {{sort: string, column?: string}} */
export function parseSort(sort) {
  return sort.startsWith(COLUMN_PREFIX) ? { sort: "column", column: sort.slice(COLUMN_PREFIX.length) } : { sort };
}

/** Whether a filter takes any number of values. @param {Condition} condition */
export const isList = (condition) => condition.kind === "classes" || condition.kind === "facts";

/** A fact as it stands in a list, and back. @param {string} name @param {string} value */
export const formatField = (name, value) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;

/** @param {string} text @returns {[string, string]} */
export function parseField(text) {
  const [name, value = ""] = text.split("=");
  return [decodePart(name), decodePart(value)];
}

/** @param {string} text */
function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an address that somebody changed
  }
}

export class GalleryAddress {
  /** @param {Condition[]} conditions @param {Sort[]} sorts */
  constructor(conditions, sorts) {
    this.conditions = conditions;
    this.sorts = sorts;
  }

  /** @returns {View} */
  everything() {
    const names = (/** @type {boolean} */ lists) => this.conditions.filter((one) => isList(one) === lists).map((one) => one.name);
    return {
      lists: Object.fromEntries(names(true).map((name) => [name, []])), given: Object.fromEntries(names(false).map((name) => [name, ""])),
      sort: DEFAULT_SORT, of: "", like: "", example: "", down: false,
    };
  }

  /** What nobody could have chosen is left out. @param {string} search of an address, "?has=fox&has=deer" @returns {View} */
  read(search) {
    const asked = new URLSearchParams(search);
    const view = this.everything();
    for (const { name, kind } of this.conditions) {
      if (name in view.lists) view.lists[name] = [...new Set(asked.getAll(name).filter(Boolean))];
      else view.given[name] = cleanValue(kind, asked.get(name) ?? "");
    }
    view.sort = this.sorts.find(({ name }) => name === asked.get("sort"))?.name ?? DEFAULT_SORT;
    view.of = asked.get("of") ?? "";
    view.like = /^\d{1,15}(,\d{1,15}){0,15}$/.test(asked.get("like") ?? "") ? String(asked.get("like")) : "";
    view.example = /^[0-9a-f]{16}$/.test(asked.get("example") ?? "") ? String(asked.get("example")) : "";
    view.down = asked.get("down") === "1";
    return view;
  }

  /** @param {View} view @returns {string} "" when everything is shown as usual */
  write(view) {
    const search = new URLSearchParams();
    for (const { name } of this.conditions) {
      for (const value of view.lists[name] ?? []) search.append(name, value);
      if (view.given[name]) search.set(name, view.given[name]);
    }
    if (view.sort !== DEFAULT_SORT) search.set("sort", view.sort);
    if (view.of && view.sort === "probability") search.set("of", view.of);
    if (view.like && view.sort === "like") search.set("like", view.like);
    if (view.example && view.sort === "like") search.set("example", view.example);
    if (view.down) search.set("down", "1");
    const text = search.toString();
    return text && `?${text}`;
  }

  /** Put it into the address, as a new entry of the browser's history. @param {View} view */
  push(view) {
    const url = new URL(window.location.href);
    url.search = this.write(view);
    if (url.href !== window.location.href) window.history.pushState(window.history.state, "", url);
  }
}

/** Whether any image may be kept out. @param {View} view */
export function hasFilters(view) {
  return Object.values(view.lists).some((values) => values.length > 0) || Object.values(view.given).some((value) => value !== "");
}
