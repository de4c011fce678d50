// @ts-check
/**
 * What a person has chosen to look at in the grid: a class, perhaps a selection from the map or the audit grid.
 * It outlives a reload.
 */

import { readSetting, writeSetting } from "../shared/storage.js";

/**
 * @typedef {{classes: {id: number}[], class: number | null, selection: {id: string, count: number} | null, audit: boolean}} Offer
 *   what the address asks for
 */

export class GridChoice {
  /** @param {{project: string} & Offer} data */
  constructor(data) {
    this.store = `annotator:${data.project}:grid`;
    const kept = readSetting(this.store) ?? {};
    /** @type {number | null} null: the server chooses the best class */
    this.class = data.classes.some((class_) => class_.id === kept.class) ? kept.class : null;
    /** The class there was before the audit grid, to go back to. @type {number | null} */
    this.before = this.class;
    /** @type {number | null} a class that is left out when the best one is asked for */
    this.but = null;
    /** @type {string | undefined} a selection that was left; the address may still name it for a while */
    this.left = undefined;
    /** Whether the audit grid is shown, and whether the address asked for it when it was last read. */
    this.audit = this.asked = false;
    /** The class that the address asked for when it was last read. @type {number | null} */
    this.askedClass = null;
    this.offer(data);
  }

  /** What the route is asked. */
  get request() {
    const { but, audit } = this;
    return { class: this.class, but, selection: audit ? undefined : this.selection?.id, audit: audit || undefined };
  }

  /** @param {number} id */
  take(id) {
    this.class = id;
    this.but = null;
    this.#keep();
  }

  /** Let the server choose the best class other than this one. @param {number | null} current */
  takeBest(current) {
    this.but = current;
    this.class = null;
    this.#keep();
  }

  /**
   * The address comes with this class, this selection, or with the audit grid.
   * @param {Offer} data @returns {boolean} whether something is new
   */
  offer({ classes, class: wanted, selection, audit }) {
    const before = [this.selection?.id, this.audit, this.class];
    if (wanted !== this.askedClass) {
      this.askedClass = wanted;
      if (classes.some((class_) => class_.id === wanted)) this.take(/** @type {number} */ (wanted));
    }
    /** @type {{id: string, count: number} | null} */
    this.selection = selection && selection.id !== this.left ? selection : null;
    if (audit !== this.asked) {
      this.asked = audit;
      this.check(audit);
    }
    return this.selection?.id !== before[0] || this.audit !== before[1] || this.class !== before[2];
  }

  /** Begin or leave the audit grid, whose classes come by themselves. @param {boolean} on */
  check(on) {
    if (on === this.audit) return;
    if (on) this.before = this.class;
    this.audit = on;
    this.class = on ? null : this.before;
    this.but = null;
    changeAddress((search) => (on ? search.set("audit", "1") : search.delete("audit")));
  }

  leaveSelection() {
    this.left = this.selection?.id;
    this.selection = null;
    changeAddress((search) => search.delete("selection"));
  }

  #keep() {
    writeSetting(this.store, { class: this.audit ? this.before : this.class });
  }
}

/** Change the query of the address without loading it. @param {(search: URLSearchParams) => void} change */
function changeAddress(change) {
  const url = new URL(window.location.href);
  change(url.searchParams);
  window.history.replaceState(window.history.state, "", url);
}
