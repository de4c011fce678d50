// @ts-check
/** What people have said about the image on screen, each with who said it. */

import { STATE_WORDS, el } from "../shared/dom.js";

export class Known {
  /** @param {(id: number) => string} name of a class */
  constructor(name) {
    this.name = name;
    /** Whose labels are shown. @type {any} */
    this.item = undefined;
    this.complete = el("span", { class: "more" }, "nothing else here");
    this.element = el("div", { class: "chips", role: "group", "aria-label": "Labels of this image" });
  }

  /** @param {any} item null: none  @param {string} me whose labels need no name */
  show(item, me) {
    if (item !== this.item) this.element.replaceChildren(...(item ? this.#labels(item, me) : []), this.complete);
    this.item = item;
    this.complete.hidden = !item?.complete;
  }

  /** @param {any} item @param {string} me */
  #labels(item, me) {
    const shown = item.labels.filter((label) => label.state !== -1);
    const absent = item.labels.filter((label) => label.state === -1);
    const chips = shown.map((label) => {
      const by = label.by && label.by !== me ? `· ${label.by}` : "";
      const words = [this.name(label.class), label.state === 0 ? "(unsure)" : "", by].filter(Boolean).join(" ");
      const title = `${STATE_WORDS[label.state]}, said ${label.by || "somebody"} (${label.source})`;
      return el("span", { class: "chip", "data-state": STATE_WORDS[label.state], title }, words);
    });
    const list = absent.map((label) => `${this.name(label.class)} (${label.by || "somebody"})`).join(", ");
    if (absent.length) chips.push(el("span", { class: "more", title: list }, `${absent.length} absent`));
    return chips.length ? chips : [el("span", { class: "more" }, "No label yet")];
  }
}
