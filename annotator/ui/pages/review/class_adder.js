// @ts-check
/** Any class for the image on screen, also one that is not suggested: found by its name, and labeled present. */

import { Chooser } from "../shared/chooser.js";
import { STATE_WORDS, el, formatCount } from "../shared/dom.js";
import { buildSwatch, formatFullName, scoreClassMatch } from "../shared/class_search.js";

const MAX_ROWS = 60;

/** @typedef {import("../shared/session.js").Class} Class */

/** @extends {Chooser<{class_: Class, synonym: string}>} */
export class ClassAdder extends Chooser {
  /**
   * @param {{classes: () => Class[], states: () => Map<number, number>, onAdd: (class_: Class) => void}} options
   *   states   class -> what is known of it on the image on screen
   */
  constructor({ classes, states, onAdd }) {
    super({
      title: "Add a class",
      placeholder: "Class that is on this image, too",
      search: (text) => {
        const typed = text.trim().toLowerCase();
        const known = states();
        const fits = classes()
          .map((class_, index) => ({ class_, index, ...scoreClassMatch(class_, typed) }))
          .filter((entry) => entry.fit < Infinity)
          .sort((a, b) => a.fit - b.fit || Number(known.has(a.class_.id)) - Number(known.has(b.class_.id)) || a.index - b.index);
        const more = fits.length - MAX_ROWS;
        const note = fits.length ? (more > 0 ? `${formatCount(more, "more class", "more classes")}: type to find them.` : "") : "No matching class.";
        return { rows: fits.slice(0, MAX_ROWS), note };
      },
      draw: ({ class_, synonym }) => {
        const state = states().get(class_.id);
        return [...buildSwatch(class_), el("span", { class: "name", dir: "auto" }, formatFullName(class_.name, synonym)),
          ...(state == null ? [] : [el("span", { class: "quiet" }, STATE_WORDS[state])])];
      },
      onTake: ({ class_ }) => onAdd(class_),
    });
  }
}
