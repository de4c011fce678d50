// @ts-check
/**
 * The classes as their relations order them. One that is dragged onto another is proposed as a kind of it: the page then
 * shows what follows, and declares nothing by itself.
 */

import { arrangeClasses } from "../annotate/class_order.js";
import { Relations } from "../shared/relations.js";
import { el } from "../shared/dom.js";

export default class ClassTree {
  /** @param {any} component */
  constructor(component) {
    /** The class that is dragged; 0: none. */
    this.dragged = 0;
    this.place = /** @type {HTMLElement} */ (component.parentElement.querySelector(".tree"));
    Object.assign(this.place, { tabIndex: 0, role: "group", ariaLabel: "Classes as their relations order them" }); // it scrolls
    this.place.addEventListener("dragstart", (event) => this.start(event));
    this.place.addEventListener("dragover", (event) => this.over(event));
    this.place.addEventListener("dragleave", () => this.leave());
    this.place.addEventListener("dragend", () => this.end());
    this.place.addEventListener("drop", (event) => this.drop(event));
    this.update(component);
  }

  /** @param {any} component */
  update({ data, setTriggerValue }) {
    this.tell = (/** @type {number[]} */ pair) => setTriggerValue("dropped", pair);
    const { sections, depths } = arrangeClasses(data.classes, new Relations(data.relations));
    this.place.replaceChildren(...sections.map(({ heading, group, classes }) =>
      el("section", { class: group ? "group" : "" },
        ...(heading ? [el("h4", { dir: "auto" }, heading)] : []),
        el("ul", {}, ...classes.map(({ id, name }) =>
          el("li", { draggable: "true", "data-class": id, style: `--depth:${depths.get(id) ?? 0}`, title: name, dir: "auto" }, name))))));
  }

  unmount() {}

  /** @param {Event} event @returns {HTMLElement | null} */
  #row(event) {
    return /** @type {Element} */ (event.target).closest?.("[data-class]") ?? null;
  }

  /** @param {DragEvent} event */
  start(event) {
    this.dragged = Number(this.#row(event)?.dataset.class ?? 0);
    event.dataTransfer?.setData("text/plain", this.#row(event)?.textContent ?? "");
  }

  /** @param {DragEvent} event */
  over(event) {
    const row = this.#row(event);
    this.leave();
    if (!this.dragged || !row || Number(row.dataset.class) === this.dragged) return;
    event.preventDefault();
    row.classList.add("over");
  }

  leave() {
    for (const row of this.place.querySelectorAll(".over")) row.classList.remove("over");
  }

  end() {
    this.leave();
    this.dragged = 0;
  }

  /** @param {DragEvent} event */
  drop(event) {
    const row = this.#row(event);
    if (!this.dragged || !row) return; // a file, or a class of another window
    event.preventDefault();
    this.tell([this.dragged, Number(row.dataset.class)]);
    this.end();
  }
}
