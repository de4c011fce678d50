// @ts-check
/**
 * What answers imply by the relations of classes, for the image on screen, before the server has stored it: the same
 * rules as store/relations/implication.py.
 */

import { ABSENT, PRESENT } from "./states.js";

/** @typedef {{parents: [number, number][], groups: {name: string, exactly_one: boolean, classes: number[]}[]}} Declared */

export class Relations {
  /** @param {Declared | undefined} declared by pairs [child, parent], and groups */
  constructor(declared) {
    /** @type {Map<number, number[]>} */
    this.parents = new Map();
    /** @type {Map<number, number[]>} */
    this.children = new Map();
    this.groups = declared?.groups ?? [];
    for (const [child, parent] of declared?.parents ?? []) {
      this.parents.set(child, [...(this.parents.get(child) ?? []), parent]);
      this.children.set(parent, [...(this.children.get(parent) ?? []), child]);
    }
    this.some = this.parents.size > 0 || this.groups.length > 0;
  }

  /**
   * What answers imply of the classes without an answer.
   * @param {Map<number, number>} answers class -> state @returns {Map<number, number>}
   */
  implied(answers) {
    const found = new Map();
    if (!this.some) return found;
    for (const [id, states] of this.#meant(answers)) {
      if (!answers.has(id) && states.size === 1) found.set(id, [...states][0]);
    }
    return found;
  }

  /** The classes whose answers contradict what others imply. @param {Map<number, number>} answers @returns {number[]} */
  contradicted(answers) {
    if (!this.some) return [];
    const meant = this.#meant(answers);
    return [...answers].filter(([id, state]) => state && meant.get(id)?.has(-state)).map(([id]) => id);
  }

  /**
   * Whether an image with these answers and no other positive is empty: nothing is present, and nothing always is.
   * @param {Map<number, number>} answers @param {Map<number, number>} implied by them
   */
  isEmpty(answers, implied) {
    return !this.groups.some((group) => group.exactly_one) && [...answers.values(), ...implied.values()].every((state) => state === ABSENT);
  }

  /**
   * What "nothing else here" leaves alone: what is implied to be present, and groups of which one is always present and
   * none is said to be.
   * @param {Map<number, number>} answers @returns {{classes: Set<number>, asked: string[]}} asked: the names of such groups
   */
  spared(answers) {
    const shown = new Set([...answers, ...this.implied(answers)].filter(([, state]) => state === PRESENT).map(([id]) => id));
    const open = this.groups.filter((group) => group.exactly_one && !group.classes.some((id) => shown.has(id)));
    const classes = new Set([...shown, ...open.flatMap((group) => group.classes)].filter((id) => !answers.has(id)));
    return { classes, asked: open.map((group) => group.name) };
  }

  /**
   * What a class is a kind of, from the most general on: by its first parent, and that one's first.
   * @param {number} id @param {Map<number, string>} names of the classes
   */
  path(id, names) {
    const above = [];
    for (let [parent] = this.parents.get(id) ?? []; parent != null; [parent] = this.parents.get(parent) ?? []) above.unshift(names.get(parent) ?? "");
    return above.filter(Boolean).join(" › ");
  }

  /** All states that answers mean: class -> states. @param {Map<number, number>} answers @returns {Map<number, Set<number>>} */
  #meant(answers) {
    /** @type {Map<number, Set<number>>} */
    const meant = new Map();
    const add = (/** @type {number} */ id, /** @type {number} */ state) => meant.set(id, (meant.get(id) ?? new Set()).add(state));
    for (const [id, state] of answers) {
      if (state === ABSENT) for (const below of this.#all(id, this.children)) add(below, ABSENT);
      if (state !== PRESENT) continue;
      const above = this.#all(id, this.parents);
      for (const one of above) add(one, PRESENT);
      for (const one of [id, ...above]) {
        for (const other of this.groups.filter((group) => group.classes.includes(one)).flatMap((group) => group.classes)) {
          if (other !== one) for (const absent of [other, ...this.#all(other, this.children)]) add(absent, ABSENT);
        }
      }
    }
    for (const { classes, exactly_one: exactly } of this.groups) {
      const left = classes.filter((id) => answers.get(id) !== ABSENT);
      if (exactly && left.length === 1) add(left[0], PRESENT);
    }
    return meant;
  }

  /** @param {number} id @param {Map<number, number[]>} way up or down @returns {Set<number>} */
  #all(id, way) {
    const found = new Set();
    const waiting = [...(way.get(id) ?? [])];
    while (waiting.length) {
      const one = waiting.pop();
      if (found.has(one)) continue;
      found.add(one);
      waiting.push(...(way.get(one) ?? []));
    }
    return found;
  }
}
