// @ts-check
/** What stands where an item would be: why there is none, and links to the pages that have something to do. */

import { el } from "./dom.js";

/** Title and address; Annotate is the app's first page. @type {Record<string, [string, string]>} */
const PAGES = {
  annotate: ["Annotate", "./"],
  autopilot: ["Autopilot", "autopilot"],
  grid: ["Grid", "grid"],
  review: ["Review", "review"],
  progress: ["Progress", "progress"],
  certificate: ["Certificate", "certificate"],
  export: ["Export", "export"],
};

/** Words for the place of the current item while it cannot be shown. @param {import("./hand.js").Hand} hand */
export function placeholder({ current, news }) {
  if (!current) return news.empty || "One moment...";
  return current.broken ? notShown(current.name, current.broken) : "Loading image...";
}

/** @param {string} name of an image @param {string} reason */
export function notShown(name, reason) {
  return `${name} cannot be shown: ${reason} Press Space to go on.`;
}

/** @param {string[] | undefined} names of pages with work, as the server gives them */
export function onward(names) {
  const pages = (names ?? []).map((name) => PAGES[name]).filter(Boolean);
  return el("div", { class: "tools onward" }, ...pages.map(([title, href]) => el("a", { href }, `Go to ${title}`)));
}
