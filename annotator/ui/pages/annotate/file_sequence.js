// @ts-check
/**
 * Images in the order of their files: how far this person has come, and the images beside the one on screen.
 *
 * A neighbor is shown beside the queue: whatever is done to it, going on leads back to where one was, and an image that
 * is in the queue keeps its place there. Neighbors are those of the same folder, by the order that is chosen, or by name.
 */

import { capitalize, el, kbd } from "../shared/dom.js";
import { PRESENT } from "../shared/states.js";

/** @typedef {import("../shared/item_queue.js").Item} Item */
/** @typedef {"before" | "after"} Way */
/** @typedef {Record<Way, Item | null>} Beside */

export class FileSequence {
  /** @param {import("./annotate.js").default} page */
  constructor(page) {
    this.page = page;
    this.session = page.session;
    this.orderField = page.orderField;
    /** The last image of the queue that this person has left; null: as the server has it. @type {number | null} */
    this.after = null;
    /** Where one was before the first neighbor. @type {Item | null} */
    this.home = null;
    /** What is beside the image that was asked for last. @type {{key: string, answer: Promise<Beside> | null}} */
    this.asked = { key: "", answer: null };
    this.before = buildSideButton("Previous image in the folder", "[", () => this.visit("before"));
    this.next = buildSideButton("Next image in the folder", "]", () => this.visit("after"));
    const copy = { type: "button", "aria-keyshortcuts": "=", onclick: () => this.copy(), title: "Also label it with the classes of the previous image" };
    this.same = el("button", copy, el("span", {}, "Same labels"), kbd("="));
    this.clear();
  }

  // The queue

  /** What the queue is asked for besides. */
  get place() {
    return this.orderField.isSequence ? { after: this.after } : {};
  }

  /** Another order was chosen. */
  restart() {
    this.after = null;
    this.clear();
    this.page.items.restart();
  }

  /** The server has said where this person is, unless they have gone on since. */
  onNews() {
    const { news } = this.page.items;
    if (news.sequence && news.sequence === this.orderField.name) this.after ??= news.after;
  }

  /** Go on from the image on screen. @param {() => void} act */
  leave(act) {
    const { items } = this.page;
    const item = items.current;
    const again = Boolean(item?.passedOn);
    act();
    if (!item || items.current === item) return;
    if (item.opened) this.#putBack(item);
    else if (!again) {
      item.followed = this.after;
      this.after = item.id;
    }
  }

  /** An item is on screen again because its decision was undone. @param {Item} item */
  backTo(item) {
    if (item.followed !== undefined) this.after = item.followed;
  }

  // Neighbors

  /** Put the image beside this one on screen. @param {Way} way */
  async visit(way) {
    const { items } = this.page;
    const found = items.current && (await this.#beside(items.current, way));
    if (!found) return;
    const here = /** @type {Item} */ (items.current);
    if (!here.opened) this.home = here;
    else {
      items.current = null;
      here.passedOn = true;
      items.earlierItems.push(here);
      this.#putBack(here);
    }
    const index = items.queue.findIndex((item) => item.id === found.id);
    const item = items.find(found.id) ?? { ...found }; // what this page has knows the answers that are not saved yet
    const opened = item !== this.home;
    item.place = opened && index >= 0 ? { before: items.queue[index + 1]?.id } : undefined;
    this.page.notice = opened ? `${found.name}. Space goes back to where you were.` : "";
    items.bringBack(Object.assign(item, { opened }));
  }

  /** The classes that are present on the image before, where this one has no answer yet. It stays, to be looked at. */
  async copy() {
    const item = this.page.getPressedItem("many");
    const before = item && (await this.#beside(item, "before"));
    if (!before) return;
    const answered = new Set(item.labels.map((/** @type {any} */ label) => label.class));
    const copied = this.#present(before).filter((id) => !answered.has(id));
    if (copied.length) {
      const labels = [...item.labels, ...copied.map((id) => ({ class: id, state: PRESENT, source: "click" }))];
      this.page.answer(item, { action: "batch", cells: copied.map((id) => [item.id, id, PRESENT, null]) }, labels, false);
    }
    this.session.showMessage(copied.length ? `As on ${before.name}: ${this.#names(copied)}.` : `${before.name} has no other class to take over.`);
  }

  /** Nothing is known of the image on screen yet. */
  clear() {
    for (const button of [this.before, this.next]) button.classList.add("unknown");
    for (const part of [this.before, this.next, this.same]) part.hidden = !this.orderField.isSequence;
  }

  /** Show what is beside the image on screen, and have it at hand. @param {Item | null} item */
  async show(item) {
    if (!item || !this.orderField.isSequence) return;
    const beside = await this.#ask(item).catch(() => null);
    if (!beside || this.page.items.current !== item) return;
    this.#fill(this.before, beside.before, "before");
    this.#fill(this.next, beside.after, "after");
  }

  /** @param {Item} item on screen @param {Way} way @returns {Promise<Item | null>} null, with words, where there is none */
  async #beside(item, way) {
    try {
      const beside = await this.#ask(item);
      if (this.page.items.current !== item) return null;
      if (!beside[way]) this.session.showMessage(`This is the ${way === "before" ? "first" : "last"} image of its folder.`);
      return beside[way];
    } catch (error) {
      this.session.showMessage(`The ${way === "before" ? "previous" : "next"} image cannot be shown: ${error.message}.`);
      return null;
    }
  }

  /** @param {Item} item @returns {Promise<Beside>} */
  #ask(item) {
    const by = this.orderField.isSequence ? this.orderField.name : "name";
    const key = `${by} ${item.id}`;
    if (key !== this.asked.key || !this.asked.answer) {
      const answer = this.session.api.post("/api/neighbours", { image: item.id, by });
      answer.catch(() => {
        this.asked.answer = null;
      });
      this.asked = { key, answer };
    }
    return /** @type {Promise<Beside>} */ (this.asked.answer);
  }

  /** What was visited comes in its turn. @param {Item} item */
  #putBack(item) {
    const { items } = this.page;
    const { place } = item;
    if (!place || items.queue.some((other) => other.id === item.id)) return;
    const index = items.queue.findIndex((other) => other.id === place.before);
    const inTurn = { ...item, opened: false, passedOn: false, place: undefined };
    items.queue.splice(index < 0 ? items.queue.length : index, 0, inTurn);
  }

  /** Classes that are present on an image, as far as this page knows. @param {Item} item @returns {number[]} */
  #present(item) {
    const labels = this.page.items.find(item.id)?.labels ?? item.labels;
    return labels.filter(({ state }) => state === PRESENT).map((label) => label.class);
  }

  /** @param {number[]} ids of classes */
  #names(ids) {
    return ids.map((id) => this.session.names.get(id) ?? "?").join(", ");
  }

  /** @param {HTMLButtonElement} button @param {Item | null} item @param {Way} way */
  #fill(button, item, way) {
    const which = way === "before" ? "previous" : "next";
    const about = item ? `${item.name}: ${this.#names(this.#present(item)) || "no class present"}` : `No ${which} image in this folder`;
    button.disabled = !item;
    button.title = about;
    button.setAttribute("aria-label", item ? `${capitalize(which)} image in the folder, ${about}` : about);
    const picture = /** @type {HTMLImageElement} */ (button.querySelector("img"));
    picture.hidden = !item;
    if (item) {
      picture.src = this.session.api.url(`/api/thumb/${item.id}`);
      new Image().src = this.session.api.url(`/api/image/${item.id}`); // so that it is there at once
    }
    button.classList.remove("unknown");
  }
}

/** @param {string} name @param {string} key @param {() => void} act */
function buildSideButton(name, key, act) {
  const props = { type: "button", class: "side-image", "aria-label": name, "aria-keyshortcuts": key, onclick: act };
  return el("button", props, el("img", { alt: "", draggable: "false" }), kbd(key));
}
