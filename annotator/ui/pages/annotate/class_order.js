// @ts-check
/**
 * Classes as their relations order them: what is a kind of another class stands below it, and the classes of a group of
 * which one is present stand together. The rest keeps the project's order and headings.
 */

import { groupByHeading } from "../shared/class_search.js";

const MAX_INDENT_DEPTH = 4; // what lies deeper is indented no further

/**
 * @typedef {import("../shared/session.js").Class} Class
 * @typedef {{heading: string, group: boolean, tree: boolean, classes: Class[]}} Section
 *   group: of its classes one, or at most one, is present; tree: some stand below others
 */

/**
 * Order the classes of a project.
 * @param {Class[]} classes in the project's order
 * @param {import("../shared/relations.js").Relations} relations
 * @returns {{sections: Section[], depths: Map<number, number>}} depths: of the classes that stand below others, from 1
 */
export function arrangeClasses(classes, relations) {
  /** @type {Map<number, number>} */
  const depths = new Map();
  const plain = (/** @type {{heading: string, classes: Class[]}} */ part) => ({ ...part, group: false, tree: false });
  if (!relations.some) return { sections: groupByHeading(classes).map(plain), depths };
  const byId = new Map(classes.map((class_) => [class_.id, class_]));
  /** @type {Map<number, Class[]>} */
  const below = new Map();
  const roots = [];
  for (const class_ of classes) {
    const parent = relations.parents.get(class_.id)?.find((id) => byId.has(id));
    if (parent == null) roots.push(class_);
    else below.set(parent, [...(below.get(parent) ?? []), class_]);
  }
  const family = (/** @type {Class} */ class_, depth = 0) => {
    if (depth) depths.set(class_.id, Math.min(depth, MAX_INDENT_DEPTH));
    /** @type {Class[]} */
    const found = [class_];
    for (const child of below.get(class_.id) ?? []) found.push(...family(child, depth + 1));
    return found;
  };
  /** @type {Section[]} */
  const sections = [];
  const ofGroup = new Map();
  /** @type {Section | undefined} */
  let last;
  for (const root of roots) {
    const group = relations.groups.find((one) => one.classes.filter((id) => byId.has(id)).length > 1 && one.classes.includes(root.id));
    const heading = group ? `${group.name} · ${group.exactly_one ? "exactly one" : "at most one"}` : root.heading ?? "";
    let section = group ? ofGroup.get(group) : last?.heading === heading ? last : undefined;
    if (!section) {
      section = { heading, group: group != null, tree: false, classes: [] };
      sections.push(section);
    }
    if (group) ofGroup.set(group, section);
    else last = section;
    const own = family(root);
    section.classes.push(...own);
    section.tree ||= own.length > 1;
  }
  return { sections, depths };
}
