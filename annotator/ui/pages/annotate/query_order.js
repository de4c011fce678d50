// @ts-check
/** In which order images come: a choice with a sentence about it, kept in this browser for each project. */

import { el } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

const FILE_ORDERS = ["name", "time"]; // orders of files
const ORDERS_WITHOUT_MODEL = ["random", "incomplete", ...FILE_ORDERS];

/** @typedef {{name: string, title: string, about: string}} Strategy */

export class QueryOrderField {
  /**
   * @param {{project: string, orders: Strategy[], usual: string, onChange: () => void}} options
   * usual: the order of the project, for whoever has not chosen another
   */
  constructor({ project, orders, usual, onChange }) {
    this.store = `annotator:${project}:order`;
    this.orders = orders;
    this.usual = usual;
    this.onChange = onChange;
    /** Whether the list was opened by pointer: then the keys are about the image again once something is chosen. */
    this.pointed = false;
    this.about = el("span", { class: "sr-only", id: "order-about" });
    this.field = el("select", {
      "aria-describedby": "order-about",
      onpointerdown: () => {
        this.pointed = true;
      },
      onkeydown: () => {
        this.pointed = false;
      },
      onchange: () => this.#choose(),
    }, ...orders.map(({ name, title }) => el("option", { value: name }, title)));
    this.element = el("label", { class: "order" }, el("span", { class: "quiet" }, "Order"), this.field, this.about);
    this.field.value = this.#recallOrder();
    this.describe(true);
  }

  /** The name of the order, as the route wants it. */
  get name() {
    return this.field.value;
  }

  /** Whether images come in the order of their files. */
  get isSequence() {
    return FILE_ORDERS.includes(this.name);
  }

  /** Say what the order does. @param {boolean} hasModel whether there has been a run */
  describe(hasModel) {
    const about = this.orders.find(({ name }) => name === this.name)?.about ?? "";
    const later = ORDERS_WITHOUT_MODEL.includes(this.name) || hasModel ? "" : " Random until there is a model.";
    if (this.about.textContent === about + later) return;
    this.about.textContent = this.element.title = about + later;
  }

  #choose() {
    writeSetting(this.store, this.name);
    if (this.pointed) this.field.blur();
    this.onChange();
  }

  #recallOrder() {
    const kept = readSetting(this.store);
    return this.orders.some(({ name }) => name === kept) ? kept : this.usual;
  }
}
