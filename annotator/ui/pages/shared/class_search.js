// @ts-check
/** Classes as people know them: under headings, with a color, found by their names and synonyms. */

import { el } from "./dom.js";
import { scoreMatch } from "./name_match.js";

/** @typedef {import("./session.js").Class} Class */

/**
 * Classes in groups: those of one heading that follow each other.
 * @template {{heading?: string}} T
 * @param {T[]} classes in the project's order @returns {{heading: string, classes: T[]}[]}
 */
export function groupByHeading(classes) {
  /** @type {{heading: string, classes: T[]}[]} */
  const groups = [];
  for (const class_ of classes) {
    const heading = class_.heading ?? "";
    if (groups.at(-1)?.heading === heading) groups.at(-1)?.classes.push(class_);
    else groups.push({ heading, classes: [class_] });
  }
  return groups;
}

/** The dot in the color of a class; nothing for a class without one. @param {{colour?: string}} class_ @returns {Node[]} */
export function buildSwatch({ colour }) {
  return colour ? [el("span", { class: "swatch", style: `background:${colour}`, "aria-hidden": "true" })] : [];
}

/**
 * How well a class fits what somebody typed, by its name or, where that fits better, by a synonym.
 * @param {{name: string, synonyms?: readonly string[]}} class_ @param {string} typed lower case
 * @returns {{fit: number, synonym: string}} fit as in name_match.js; synonym: "" when it is the name that fits
 */
export function scoreClassMatch({ name, synonyms = [] }, typed) {
  let best = { fit: scoreMatch(name.toLowerCase(), typed), synonym: "" };
  for (const synonym of synonyms) {
    const other = scoreMatch(synonym.toLowerCase(), typed);
    if (other < best.fit) best = { fit: other, synonym };
  }
  return best;
}

/**
 * The class that somebody means: the one with this name or synonym, else the one that fits best; null: none does.
 * @template {{name: string, synonyms?: readonly string[]}} T
 * @param {readonly T[]} classes @param {string} typed @param {number} [worst] fit, as in name_match.js, that is still taken
 * @returns {T | null}
 */
export function findMeantClass(classes, typed, worst = 3) {
  const text = typed.trim();
  if (!text) return null;
  const same = classes.find(({ name, synonyms = [] }) => name === text || synonyms.includes(text));
  if (same) return same;
  const fits = classes.map((class_) => ({ class_, ...scoreClassMatch(class_, text.toLowerCase()) })).filter(({ fit }) => fit <= worst);
  fits.sort((a, b) => a.fit - b.fit || a.class_.name.length - b.class_.name.length);
  return fits[0]?.class_ ?? null;
}

/** "raincoat (synonym of rain coat)", or the name alone. @param {string} name @param {string} synonym */
export function formatFullName(name, synonym) {
  return synonym ? `${synonym} (synonym of ${name})` : name;
}
