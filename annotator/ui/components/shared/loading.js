// @ts-check
/** The pictures of the items in hand, or whatever else they show: fetched and decoded before they are needed. */

import { pictureOf } from "./pictures.js";

const AHEAD_PIXELS = 60e6; // pictures decoded before they are needed, 240 MB at most: all in hand, when they are small
const DISPLAY_PIXELS = 1600 * 1600; // the server sends nothing larger
const RETRY = 1500; // milliseconds

/** @typedef {import("./hand.js").Item} Item */

export class Loading {
  /** @param {import("./hand.js").Hand} hand @param {((item: Item) => Promise<unknown>) | undefined} own how a page loads its items itself */
  constructor(hand, own) {
    this.hand = hand;
    this.own = own;
  }

  /** Load what comes next, as much as there is room for. */
  ahead() {
    if (this.own) {
      for (const item of this.hand.queue) this.load(item);
      return;
    }
    let room = AHEAD_PIXELS;
    for (const item of this.hand.queue) {
      room -= Math.min(item.width * item.height, DISPLAY_PIXELS);
      if (room > 0) this.load(item);
      else this.forget(item); // far back again, after many were undone
    }
  }

  /** @param {Item} item */
  load(item) {
    if (item.coming) return;
    const { hand } = this;
    item.broken = "";
    item.coming = (this.own ? this.own(item) : this.#picture(item))
      .then(() => {
        item.loaded = true;
      })
      .catch(async () => {
        item.broken = await this.#reason(item);
        item.picture = item.coming = undefined;
      })
      .finally(() => {
        if (hand.current === item && !hand.closed) {
          hand.session.repeats.shown();
          hand.onShow();
        }
      });
  }

  /** @param {Item} item */
  forget(item) {
    item.picture = item.loaded = item.coming = undefined;
  }

  /** @param {Item} item */
  #picture(item) {
    const picture = pictureOf(item.id);
    picture.alt = item.name;
    // Not behind all that is fetched ahead.
    picture.fetchPriority = this.hand.current === item ? "high" : "auto";
    picture.src = this.hand.api.url(`/api/image/${item.id}`);
    item.picture = picture;
    return picture.decode();
  }

  /** Why the picture did not come. @param {Item} item */
  async #reason(item) {
    let reason = "the server cannot be reached; it is tried again";
    try {
      const response = await fetch(this.hand.api.url(`/api/image/${item.id}`));
      if (response.ok) return "this browser cannot show it";
      const said = (await response.json()).error ?? `the server answered ${response.status}`;
      if (response.status !== 401) return said;
      reason = `${said}; it is tried again`; // with the pass that the hand asks for
    } catch {
      // nobody answered
    }
    window.setTimeout(() => this.hand.current === item && !this.hand.closed && this.load(item), RETRY);
    return reason;
  }
}
