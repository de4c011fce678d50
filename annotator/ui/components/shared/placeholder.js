// @ts-check
/** What stands where an item would be: why there is none, and links to the pages that have something to do. */

import { el } from "./dom.js";

/** Words for the place of the current item while it cannot be shown. @param {import("./hand.js").Hand} hand */
export function placeholder({ current, opening, news }) {
  if (opening) return "Opening the image...";
  if (!current) return news.empty || "Loading...";
  return current.broken ? notShown(current.name, current.broken) : "Loading image...";
}

/** @param {string} name of an image @param {string} reason */
export function notShown(name, reason) {
  return `${name} cannot be shown: ${reason.replace(/[.\s]*$/, "")}. Press Space to go on.`;
}

/**
 * @param {import("./session.js").Session} session
 * @param {string[]} [names] of pages; without them those that have work, as the server last said
 */
export function onward({ hand, data }, names = hand.news.onward) {
  /** @type {[string, string][]} title and address */
  const pages = (names ?? []).map((name) => data.pages[name]).filter(Boolean);
  return el("div", { class: "tools onward" }, ...pages.map(([title, href]) => el("a", { href }, `Go to ${title}`)));
}
