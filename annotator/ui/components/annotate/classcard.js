// @ts-check
/**
 * What a class means: its description and up to six images that somebody confirmed. Shown when the pointer or the focus
 * rests on a class, or with a long press; it can be walked into with the pointer, and Escape takes it away.
 */

import { el, kbd } from "../shared/dom.js";

const REST = 350; // milliseconds
const LEAVE = 250; // enough to cross the gap between a button and its card
const CROSS = 160; // enough to cross another button on the way
const FRESH = 60_000; // the examples asked for this long ago are still good
const GAP = 12;

/** @typedef {{id: number, name: string, description: string, key: string}} Class */

export class ClassCard {
  /** @param {import("../shared/api.js").Api} api */
  constructor(api) {
    this.api = api;
    /** @type {Map<number, {at: number, images: Promise<number[]>}>} */
    this.known = new Map();
    /** @type {Class | null} */
    this.one = null;
    /** @type {HTMLElement | null} */
    this.anchor = null;
    this.timer = 0;
    this.element = el("div", { class: "card", id: "class-card", role: "tooltip", popover: "manual" });
    this.element.addEventListener("pointerenter", () => clearTimeout(this.timer));
    this.element.addEventListener("pointerleave", () => this.leave());
  }

  get open() {
    return this.anchor != null;
  }

  /**
   * Show cards of what is in a list: elements with data-class.
   * @param {HTMLElement} list @param {(id: number) => Class | undefined} find
   */
  watch(list, find) {
    /** @param {Event} event */
    const under = (event) => /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-class]"));
    /** @param {Event} event @param {number} wait */
    const point = (event, wait) => {
      const node = under(event);
      if (node) this.point(find(Number(node.dataset.class)), node, wait);
      return Boolean(node);
    };
    list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(event, REST));
    list.addEventListener("pointerout", (event) => event.pointerType === "mouse" && this.leave());
    list.addEventListener("focusin", (event) => under(event)?.matches(":focus-visible") && point(event, REST));
    list.addEventListener("focusout", () => this.leave());
    list.addEventListener("contextmenu", (event) => point(event, 0) && event.preventDefault());
    list.addEventListener("scroll", () => this.hide());
  }

  /** @param {Class | null | undefined} one @param {HTMLElement | null} anchor @param {number} [wait] milliseconds */
  point(one, anchor, wait = REST) {
    clearTimeout(this.timer);
    if (!one || !anchor) this.hide();
    else if (one !== this.one) this.timer = window.setTimeout(() => this.#show(one, anchor), this.open ? Math.min(CROSS, wait) : wait);
  }

  /** The pointer went away; not at once, it may be on its way to the card. */
  leave() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.hide(), LEAVE);
  }

  hide() {
    clearTimeout(this.timer);
    if (!this.open) return;
    this.anchor.removeAttribute("aria-describedby");
    this.anchor = this.one = null;
    if (this.element.isConnected) this.element.hidePopover();
  }

  /** There is a new example, or one less. @param {number} id */
  forget(id) {
    this.known.delete(id);
  }

  /** @param {Class} one @param {HTMLElement} anchor */
  #show(one, anchor) {
    if (!anchor.isConnected || !this.element.isConnected) return;
    this.anchor?.removeAttribute("aria-describedby");
    this.one = one;
    this.anchor = anchor;
    anchor.setAttribute("aria-describedby", this.element.id);
    const examples = el("div", { class: "examples" });
    this.element.replaceChildren(
      el("p", { class: "title" }, el("strong", {}, one.name), ...(one.key ? [kbd(one.key)] : [])),
      ...(one.description ? [el("p", {}, one.description)] : []),
      examples,
    );
    this.element.showPopover();
    this.#place();
    this.#examples(one.id).then((images) => {
      if (this.one !== one) return;
      if (images.length) examples.replaceChildren(...images.map((id) => this.#thumb(id, one.name)));
      else examples.replaceChildren(el("p", { class: "quiet" }, "No image has this label yet."));
      this.#place();
    });
  }

  /** Beside the list it is about, over the picture, where there is room for it; else below or above the class. */
  #place() {
    const about = this.anchor.getBoundingClientRect();
    const list = (this.anchor.closest("[role=group], [role=listbox]") ?? this.anchor).getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const beside = list.left - width - GAP >= 0;
    const below = about.bottom + GAP + height <= window.innerHeight;
    const left = beside ? list.left - width - GAP : Math.max(GAP, Math.min(about.left, window.innerWidth - width - GAP));
    const top = beside ? about.top : below ? about.bottom + GAP : about.top - height - GAP;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${Math.max(GAP, Math.min(top, window.innerHeight - height - GAP))}px`;
  }

  /** @param {number} id */
  #examples(id) {
    const known = this.known.get(id);
    if (known && performance.now() - known.at < FRESH) return known.images;
    const images = this.api.post("/api/examples", { class: id }).then(
      (answer) => answer.images,
      () => {
        this.forget(id); // asked again next time
        return [];
      },
    );
    this.known.set(id, { at: performance.now(), images });
    return images;
  }

  /** @param {number} id @param {string} name */
  #thumb(id, name) {
    return el("img", { src: this.api.url(`/api/thumb/${id}`), alt: `An image with ${name}`, draggable: "false" });
  }
}
