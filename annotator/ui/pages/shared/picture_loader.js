// @ts-check
/** The pictures of the held items, or whatever else they show: fetched and decoded before they are needed. */

import { createPicture } from "./pictures.js";

const AHEAD_PIXELS = 60e6; // pictures decoded before they are needed, 240 MB at most: all held items, when they are small
const DISPLAY_PIXELS = 1600 * 1600; // the server sends nothing larger
const RETRY_MILLISECONDS = 1500;

/** @typedef {import("./item_queue.js").Item} Item */

export class PictureLoader {
  /** @param {import("./item_queue.js").ItemQueue} items @param {((item: Item) => Promise<unknown>) | undefined} own how a page loads its items itself */
  constructor(items, own) {
    this.items = items;
    this.loadOwn = own;
  }

  /** Load what comes next, as much as there is room for. */
  loadAhead() {
    if (this.loadOwn) {
      for (const item of this.items.queue) this.load(item);
      return;
    }
    let room = AHEAD_PIXELS;
    for (const item of this.items.queue) {
      room -= Math.min(item.width * item.height, DISPLAY_PIXELS);
      if (room > 0) this.load(item);
      else this.forget(item); // far back again, after many were undone
    }
  }

  /** @param {Item} item */
  load(item) {
    if (item.coming) return;
    const { items } = this;
    item.broken = "";
    item.coming = (this.loadOwn ? this.loadOwn(item) : this.#loadPicture(item))
      .then(() => {
        item.loaded = true;
      })
      .catch(async () => {
        item.broken = await this.#findReason(item);
        item.picture = item.coming = undefined;
      })
      .finally(() => {
        if (items.current === item && !items.closed) {
          items.session.pressGuard.onItemShown();
          items.onShow();
        }
      });
  }

  /** @param {Item} item */
  forget(item) {
    item.picture = item.loaded = item.coming = undefined;
  }

  /** @param {Item} item */
  #loadPicture(item) {
    const picture = createPicture(item.id);
    picture.alt = item.name;
    // Not behind all that is fetched ahead.
    picture.fetchPriority = this.items.current === item ? "high" : "auto";
    picture.src = this.items.api.url(`/api/image/${item.id}`);
    item.picture = picture;
    return picture.decode();
  }

  /** Why the picture did not come. @param {Item} item */
  async #findReason(item) {
    let reason = "the server cannot be reached; it is tried again";
    try {
      const response = await fetch(this.items.api.url(`/api/image/${item.id}`));
      if (response.ok) return "this browser cannot show it";
      const said = (await response.json()).error ?? `the server answered ${response.status}`;
      if (response.status !== 401) return said;
      reason = `${said}; it is tried again`; // with the pass that the item queue asks for
    } catch {
      // nobody answered
    }
    window.setTimeout(() => this.items.current === item && !this.items.closed && this.load(item), RETRY_MILLISECONDS);
    return reason;
  }
}
