// @ts-check
/**
 * The offer to treat a class as absent, of which a large random sample showed nothing: a button, and what it would do,
 * to be confirmed. While that is open no key is about the images behind it.
 */

import { el, formatCount } from "../shared/dom.js";

/** @typedef {{class: number, name: string, absent: number, images: number, at_most: string}} Offer
 *   absent: random images without it; images: those that would count as absent; at_most: the share that shows it, in words */

export class RuleOutOffer {
  /** @param {(offer: Offer) => void} onRule told of a class that is treated as absent from now on */
  constructor(onRule) {
    /** @type {Offer | null} */
    this.offer = null;
    this.button = el("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "ruling-out", onclick: () => this.toggle() });
    this.words = el("p", {});
    this.panel = el("div", { class: "reasons", id: "ruling-out", role: "group", "aria-label": "Treat as absent", hidden: true },
      this.words,
      el("div", { class: "tools" },
        el("button", { type: "button", class: "main", onclick: () => this.#rule(onRule) }, "Treat as absent"),
        el("button", { type: "button", onclick: () => this.close() }, "Cancel")));
    this.element = el("div", { class: "why", hidden: true }, this.button, this.panel);
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  /** @param {Offer | null} offer null: none is made with this action */
  show(offer) {
    this.offer = offer;
    this.#open(false);
    this.element.hidden = !offer;
    if (!offer) return;
    const { name, images, absent, at_most: most } = offer;
    this.button.textContent = `Treat '${name}' as absent`;
    const share = most.replace(" ", "\u00a0");
    this.words.textContent = `${formatCount(images, "image")} will count as absent for '${name}'. At most ${share} of all show it `
      + `(95\u00a0%, ${formatCount(absent, "random image")}). Audits still ask about them.`;
  }

  toggle() {
    this.#open(!this.isOpen);
  }

  close() {
    this.#open(false);
    this.button.focus();
  }

  /** A key while it is open: Escape closes it, all others do nothing. @param {string} key */
  key(key) {
    if (key === "Escape") this.close();
    return key !== "Tab";
  }

  /** @param {boolean} open */
  #open(open) {
    this.panel.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }

  /** @param {(offer: Offer) => void} onRule */
  #rule(onRule) {
    const { offer } = this;
    this.#open(false);
    if (offer) onRule(offer);
  }
}
