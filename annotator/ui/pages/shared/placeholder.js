// @ts-check
/** What stands where an item would be: why there is none, and links to the pages that have something to do. */

import { el } from "./dom.js";

/** What is waited for while the current item cannot be shown or answered. @param {import("./item_queue.js").ItemQueue} items */
export function describeWait({ current, opening, news, trouble }) {
  if (opening) return "Opening the image...";
  if (!current && trouble) return `No image yet: ${trouble}. Trying again.`;
  if (!current) return news.empty || "Getting the next images...";
  if (current.broken) return describeFailure(current.name, current.broken);
  if (!current.loaded) return `Loading ${current.name ?? "image"}...`;
  return "Reserving the image for you after the pause...";
}

/** @param {string} name of an image @param {string} reason */
export function describeFailure(name, reason) {
  return `${name} cannot be shown: ${reason.replace(/[.\s]*$/, "")}. Press Space to go on.`;
}

/**
 * @param {import("./session.js").Session} session
 * @param {string[]} [names] of pages; without them those that have work, as the server last said
 */
export function buildOnwardLinks({ items, data }, names = items.news.onward) {
  /** @type {[string, string][]} title and address */
  const pages = (names ?? []).map((name) => data.pages[name]).filter(Boolean);
  return el("div", { class: "tools onward" }, ...pages.map(([title, href]) => el("a", { href }, `Go to ${title}`)));
}
