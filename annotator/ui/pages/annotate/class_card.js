// @ts-check
/**
 * What a class means: its description and up to six images that somebody confirmed. Shown when the pointer or the focus
 * rests on a class, or with a long press; it can be walked into with the pointer, and Escape takes it away.
 */

import { el, kbd } from "../shared/dom.js";

const HOVER_MILLISECONDS = 350;
const LEAVE_MILLISECONDS = 250; // enough to cross the gap between a button and its card
const CROSS_MILLISECONDS = 160; // enough to cross another button on the way
const CACHE_MILLISECONDS = 60_000; // milliseconds for which fetched examples are shown again
const CARD_GAP_PIXELS = 12;

/** @typedef {import("../shared/session.js").Class} Class */

export class ClassCard {
  /**
   * @param {import("../shared/api.js").Api} api
   * @param {import("./state_buttons.js").StateButtons} states what the class is on the image on screen, to be set with the pointer
   * @param {() => boolean} isTyping a name is being typed: no card comes over the picture unless it is asked for
   */
  constructor(api, states, isTyping) {
    this.api = api;
    this.isTyping = isTyping;
    this.states = states;
    /** @type {Map<number, {at: number, images: Promise<number[]>}>} */
    this.cache = new Map();
    /** @type {Class | null} */
    this.class_ = null;
    /** @type {HTMLElement | null} */
    this.anchor = null;
    this.timer = 0;
    this.element = el("div", { class: "card", id: "class-card", role: "group", "aria-label": "Class", popover: "manual" });
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
    // A pointer that rests while another image comes (resting_pointer.js) asks for nothing.
    list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && !list.closest(".still") && point(event, HOVER_MILLISECONDS));
    list.addEventListener("pointerout", (event) => event.pointerType === "mouse" && this.leave());
    list.addEventListener("focusin", (event) => under(event)?.matches(":focus-visible") && point(event, HOVER_MILLISECONDS));
    list.addEventListener("focusout", () => this.leave());
    list.addEventListener("contextmenu", (event) => point(event, 0) && event.preventDefault());
    list.addEventListener("scroll", () => this.hide());
  }

  /** @param {Class | null | undefined} class_ @param {HTMLElement | null} anchor @param {number} [wait] milliseconds; 0: it is asked for */
  point(class_, anchor, wait = HOVER_MILLISECONDS) {
    clearTimeout(this.timer);
    if (!class_ || !anchor || (wait && this.isTyping())) this.hide();
    else if (class_ !== this.class_) this.timer = window.setTimeout(() => this.#show(class_, anchor), this.open ? Math.min(CROSS_MILLISECONDS, wait) : wait);
  }

  /** The pointer went away; not at once, it may be on its way to the card. */
  leave() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.hide(), LEAVE_MILLISECONDS);
  }

  hide() {
    clearTimeout(this.timer);
    if (!this.open) return;
    this.anchor.removeAttribute("aria-describedby");
    this.anchor = this.class_ = null;
    if (this.element.isConnected) this.element.hidePopover();
  }

  /** The examples of this class have changed. @param {number} id */
  forget(id) {
    this.cache.delete(id);
  }

  /** @param {Class} class_ @param {HTMLElement} anchor */
  #show(class_, anchor) {
    if (!anchor.isConnected || !this.element.isConnected) return;
    this.anchor?.removeAttribute("aria-describedby");
    this.class_ = class_;
    this.anchor = anchor;
    anchor.setAttribute("aria-describedby", this.element.id);
    this.states.show(class_.id);
    const examples = el("div", { class: "examples" });
    this.element.replaceChildren(
      el("p", { class: "title" }, el("strong", { dir: "auto" }, class_.name), ...(class_.key ? [kbd(class_.key)] : [])),
      this.states.element,
      ...(class_.description ? [el("p", { dir: "auto" }, class_.description)] : []),
      examples,
    );
    this.element.showPopover();
    this.#place();
    this.#examples(class_.id).then((images) => {
      if (this.class_ !== class_) return;
      if (images.length) examples.replaceChildren(...images.map((id) => this.#thumb(id, class_.name)));
      else examples.replaceChildren(el("p", { class: "quiet" }, "No examples yet."));
      this.#place();
    });
  }

  /** Beside the list it is about, over the picture, where there is room for it; else below or above the class. */
  #place() {
    const anchored = this.anchor.getBoundingClientRect();
    const list = (this.anchor.closest("[role=group], [role=listbox]") ?? this.anchor).getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const beside = list.left - width - CARD_GAP_PIXELS >= 0;
    const below = anchored.bottom + CARD_GAP_PIXELS + height <= window.innerHeight;
    const left = beside ? list.left - width - CARD_GAP_PIXELS : Math.max(CARD_GAP_PIXELS, Math.min(anchored.left, window.innerWidth - width - CARD_GAP_PIXELS));
    const top = beside ? anchored.top : below ? anchored.bottom + CARD_GAP_PIXELS : anchored.top - height - CARD_GAP_PIXELS;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${Math.max(CARD_GAP_PIXELS, Math.min(top, window.innerHeight - height - CARD_GAP_PIXELS))}px`;
  }

  /** @param {number} id */
  #examples(id) {
    const entry = this.cache.get(id);
    if (entry && performance.now() - entry.at < CACHE_MILLISECONDS) return entry.images;
    const images = this.api.post("/api/examples", { class: id }).then(
      (answer) => answer.images,
      () => {
        this.forget(id); // asked again next time
        return [];
      },
    );
    this.cache.set(id, { at: performance.now(), images });
    return images;
  }

  /** @param {number} id @param {string} name */
  #thumb(id, name) {
    return el("img", { src: this.api.url(`/api/thumb/${id}`), alt: `An image with ${name}`, draggable: "false" });
  }
}
