// @ts-check
/**
 * Which images are selected, by their ids, and where the cursor is. A range begins at the image that was selected last
 * and may be drawn anew, as in a list of files; images that the page does not know yet are asked for.
 */

export const MOST_SELECTED = 5000;

export class Selection {
  /**
   * @param {{listing: import("./listing.js").Listing, onChange: () => void, say: (text: string) => void}} options
   */
  constructor({ listing, onChange, say }) {
    this.listing = listing;
    this.onChange = onChange;
    this.say = say;
    /** @type {Set<number>} */
    this.ids = new Set();
    /** What was selected before the range that is being drawn. @type {Set<number>} */
    this.base = new Set();
    /** Where the cursor is, and where a range begins. */
    this.at = 0;
    this.anchor = 0;
    /** Counts what the person has done, so that an answer that comes late changes nothing. */
    this.turn = 0;
  }

  /** The image under the cursor. */
  get current() {
    return this.listing.item(this.at);
  }

  /** Another list: nothing of it is selected. */
  reset() {
    this.at = this.anchor = 0;
    this.#become(new Set());
  }

  clear() {
    this.#become(new Set());
  }

  /** This one alone. @param {number} index */
  one(index) {
    const image = this.#come(index);
    if (image) this.#become(new Set([image.id]));
  }

  /** @param {number} index */
  toggle(index) {
    const image = this.#come(index);
    if (!image) return;
    const ids = new Set(this.ids);
    if (!ids.delete(image.id)) ids.add(image.id);
    this.#become(ids);
  }

  /** From where the last one was selected up to here. @param {number} index */
  async extend(index) {
    this.at = index;
    await this.#add(Math.min(this.anchor, index), Math.max(this.anchor, index));
  }

  /** Draw on from what is selected now, or from nothing. @param {number} index @param {boolean} keep */
  begin(index, keep) {
    this.at = this.anchor = index;
    this.#become(keep ? new Set(this.ids) : new Set());
  }

  /** The rectangle that is being drawn holds these. @param {number[]} indexes */
  rectangle(indexes) {
    this.turn += 1;
    this.ids = new Set(this.base);
    for (const index of indexes) {
      const image = this.listing.item(index);
      if (image && this.ids.size < MOST_SELECTED) this.ids.add(image.id);
    }
    this.onChange();
  }

  /** All of the filter. */
  async all() {
    const { total } = this.listing;
    if (!total) return;
    this.base = new Set();
    if (total > MOST_SELECTED) {
      const number = (/** @type {number} */ count) => count.toLocaleString("en");
      this.say(`The first ${number(MOST_SELECTED)} of ${number(total)} images are selected, the most at once.`);
    }
    await this.#add(0, total - 1);
  }

  /** @param {number} index @returns {import("./listing.js").Image | null} */
  #come(index) {
    this.at = this.anchor = index;
    return this.listing.item(index);
  }

  /** @param {Set<number>} ids */
  #become(ids) {
    this.turn += 1;
    this.ids = ids;
    this.base = new Set(ids);
    this.onChange();
  }

  /** @param {number} first @param {number} last */
  async #add(first, last) {
    this.turn += 1;
    const { turn } = this;
    const ids = await this.#listIds(first, Math.min(last, first + MOST_SELECTED - 1));
    if (!ids || turn !== this.turn) return;
    const all = [...this.base, ...ids];
    if (new Set(all).size > MOST_SELECTED) this.say(`At most ${MOST_SELECTED.toLocaleString("en")} images are selected at once.`);
    this.ids = new Set(all.slice(0, MOST_SELECTED));
    this.onChange();
  }

  /** @param {number} first @param {number} last @returns {number[] | Promise<number[] | null>} */
  #listIds(first, last) {
    const known = [];
    for (let index = first; index <= last; index += 1) {
      const image = this.listing.item(index);
      if (!image) return this.#asked(first, last);
      known.push(image.id);
    }
    return known;
  }

  /** @param {number} first @param {number} last @returns {Promise<number[] | null>} */
  async #asked(first, last) {
    try {
      const { ids } = await this.listing.session.api.post("/api/gallery/ids", { ...this.listing.request, first, last });
      return ids;
    } catch (error) {
      this.say(`The images could not be selected: ${error.message}.`);
      return null;
    }
  }
}
