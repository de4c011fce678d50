// @ts-check
/**
 * The image that the address asks for: annotate?image=ID shows it with its labels, complete or not, whoever has it. The address
 * names it for as long as it is on screen, so that a reload and the browser's own Back and Forward lead to it.
 */

import { el, kbd } from "../shared/dom.js";
import { findOrigin } from "../shared/fix_link.js";

const RETRY_MILLISECONDS = 1500;

export class ImageAddress {
  /**
   * @param {import("../shared/session.js").Session} session
   * @param {(words: string) => void} tell says something that stays until a picture after the next one
   */
  constructor(session, tell) {
    this.session = session;
    this.tell = tell;
    /** The image that the address named last, as it is written there. @type {string | null} */
    this.asked = null;
    this.closed = false;
    this.moved = () => this.follow();
    window.addEventListener("popstate", this.moved);
    this.words = el("span", {});
    this.button = el("button", { type: "button", class: "back", "aria-keyshortcuts": "Escape", onclick: () => this.goBack() }, this.words, kbd("Esc"));
  }

  close() {
    this.closed = true;
    window.removeEventListener("popstate", this.moved);
  }

  /** Go where the address has come to. */
  follow() {
    const { items, data } = this.session;
    const origin = findOrigin(data.pages);
    this.button.hidden = !origin;
    this.words.textContent = `Back to ${origin?.title}`;
    const asked = new URLSearchParams(window.location.search).get("image");
    if (asked === this.asked) return;
    this.asked = asked;
    if (asked != null) this.#open(asked);
    else if (items.opening) items.cancelOpening();
    else if (items.current?.opened) items.showLater();
  }

  /** Open an image that was found on this page. @param {number} id */
  open(id) {
    const url = new URL(window.location.href);
    url.searchParams.set("image", String(id));
    window.history.pushState(window.history.state, "", url);
    this.asked = null; // also when it is the one that was asked for before
    this.follow();
  }

  /** To the page that led here. @returns {boolean} whether there was one */
  goBack() {
    const { items, data } = this.session;
    const origin = findOrigin(data.pages);
    if (items.opening) items.cancelOpening();
    else if (!origin) return false;
    else window.location.href = new URL(origin.address, window.location.href).href;
    return true;
  }

  /** The address names what is on screen if it was opened by its id, and nothing else: at once, so that a reload finds it. */
  note() {
    const { items } = this.session;
    if (this.closed || items.opening) return;
    const shown = items.current?.opened ? String(items.current.id) : null;
    if (shown === this.asked) return;
    this.asked = shown;
    const url = new URL(window.location.href);
    if (shown == null) url.searchParams.delete("image");
    else url.searchParams.set("image", shown);
    window.history.replaceState(window.history.state, "", url);
  }

  /** @param {string} asked */
  async #open(asked) {
    const { items } = this.session;
    const turn = () => items.opening && asked === this.asked && !this.closed;
    await items.openById(async () => {
      const item = await this.#fetch(asked);
      if (!item && turn()) this.tell(`There is no image ${asked.slice(0, 20)} in this project.`);
      return item;
    });
  }

  /** The image as the server has it; null when there is none, or somebody gave up waiting. @param {string} asked */
  async #fetch(asked) {
    const { session } = this;
    if (!/^[1-9]\d{0,14}$/.test(asked)) return null;
    for (;;) {
      try {
        await session.outbox.flush();
        const { items } = await session.api.post("/api/items", { images: [Number(asked)] });
        return items[0] ?? null;
      } catch (error) {
        if (error.status === 401) session.renew();
        session.showMessage(`The image cannot be opened yet: ${error.message}. Trying again; Escape gives up.`);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS));
      if (this.closed || !session.items.opening || asked !== this.asked) return null;
    }
  }
}
