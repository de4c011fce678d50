// @ts-check
/** Links to the pages that have something to do, for a page that has nothing. */

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

/** @param {string[] | undefined} names as the engine gives them (worklist.Work.onward) */
export function onward(names) {
  const pages = (names ?? []).map((name) => PAGES[name]).filter(Boolean);
  return el("div", { class: "tools onward" }, ...pages.map(([title, href]) => el("a", { href }, `Go to ${title}`)));
}
