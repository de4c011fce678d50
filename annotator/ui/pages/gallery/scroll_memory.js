// @ts-check
/** Where the person was in a list, for when they come back to it, by "back" or from another page. */

export class ScrollMemory {
  /** @param {string} project */
  constructor(project) {
    this.store = `annotator:${project}:gallery-place`;
  }

  /** @param {number | null} image under the cursor; null: where the list begins */
  keep(image) {
    try {
      sessionStorage.setItem(this.store, JSON.stringify({ search: window.location.search, image }));
    } catch {
      // Then the list begins at its first image.
    }
  }

  /** The image that the cursor was on in this list; null: there is none. @returns {number | null} */
  recall() {
    try {
      const { search, image } = JSON.parse(sessionStorage.getItem(this.store) ?? "{}");
      if (search !== window.location.search) return null;
      return Number.isInteger(image) ? image : null;
    } catch {
      return null;
    }
  }
}
