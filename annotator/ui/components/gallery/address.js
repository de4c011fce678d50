// @ts-check
/**
 * What the gallery shows, as it stands in the address: so a reload, the browser's own "back" and a copied link show the
 * same images. Classes are named, as people know them.
 */

/**
 * @typedef {{has: string[], lacks: string[], open: string[], complete: string, flagged: string, source: string, by: string,
 *            from: string, to: string, folder: string, name: string, sort: string, of: string, down: boolean}} View
 *   has, lacks, open   names of classes that an image has, lacks, has no answer of; all of them count
 *   complete, flagged  "yes", "no", or "" for both
 *   from, to           days, as in 2026-11-22, between which the newest decision was made
 *   sort               name, decided, captured, labels or probability
 *   of                 the class whose probability is sorted by
 */

export const CLASS_KEYS = /** @type {const} */ (["has", "lacks", "open"]);
export const TEXT_KEYS = /** @type {const} */ (["complete", "flagged", "source", "by", "from", "to", "folder", "name"]);
export const USUAL_SORT = "name";
export const SORTS = /** @type {const} */ (["name", "decided", "captured", "labels", "probability"]);
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** @returns {View} */
export function everything() {
  return {
    has: [], lacks: [], open: [], complete: "", flagged: "", source: "", by: "", from: "", to: "", folder: "", name: "",
    sort: USUAL_SORT, of: "", down: false,
  };
}

/** What nobody could have chosen is left out. @param {string} search of an address, "?has=fox&has=deer" @returns {View} */
export function read(search) {
  const asked = new URLSearchParams(search);
  const view = everything();
  for (const key of CLASS_KEYS) view[key] = [...new Set(asked.getAll(key).filter(Boolean))];
  for (const key of TEXT_KEYS) view[key] = asked.get(key) ?? "";
  for (const key of /** @type {const} */ (["complete", "flagged"])) if (!["yes", "no"].includes(view[key])) view[key] = "";
  for (const key of /** @type {const} */ (["from", "to"])) if (!DAY.test(view[key])) view[key] = "";
  view.sort = SORTS.find((name) => name === asked.get("sort")) ?? USUAL_SORT;
  view.of = asked.get("of") ?? "";
  view.down = asked.get("down") === "1";
  return view;
}

/** @param {View} view @returns {string} "" when everything is shown as usual */
export function write(view) {
  const search = new URLSearchParams();
  for (const key of CLASS_KEYS) for (const name of view[key]) search.append(key, name);
  for (const key of TEXT_KEYS) if (view[key]) search.set(key, view[key]);
  if (view.sort !== USUAL_SORT) search.set("sort", view.sort);
  if (view.of && view.sort === "probability") search.set("of", view.of);
  if (view.down) search.set("down", "1");
  const text = search.toString();
  return text && `?${text}`;
}

/** Whether any image may be kept out. @param {View} view */
export function filters(view) {
  return CLASS_KEYS.some((key) => view[key].length > 0) || TEXT_KEYS.some((key) => view[key] !== "");
}

/** Put it into the address, as a new entry of the browser's history. @param {View} view */
export function push(view) {
  const url = new URL(window.location.href);
  url.search = write(view);
  if (url.href !== window.location.href) window.history.pushState(window.history.state, "", url);
}
