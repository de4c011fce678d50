// @ts-check
/** How many tiles of a grid nobody has scrolled to yet: the button that saves all of them is on screen before they are. */

const COVERED_FOOT_PIXELS = 68; // CSS pixels at the foot of a small window that the button covers: tiles.css
const SEEN_SHARE = 0.5; // of a tile

export class UnseenTiles {
  /** @param {(count: number) => void} onCount told whenever the number changes */
  constructor(onCount) {
    this.onCount = onCount;
    /** @type {Element[]} */
    this.tiles = [];
    /** Tiles up to the last one that was in sight. */
    this.reached = 0;
    this.observer = new IntersectionObserver((entries) => this.#onIntersection(entries), { threshold: SEEN_SHARE, rootMargin: `0px 0px -${COVERED_FOOT_PIXELS}px` });
  }

  /** @param {Element[]} tiles of the grid on screen, in their order; none where all of them fit into the window */
  watch(tiles) {
    this.observer.disconnect();
    this.tiles = tiles;
    this.reached = 0;
    for (const tile of tiles) this.observer.observe(tile);
    this.onCount(0); // until the browser has compared them with the window
  }

  close() {
    this.observer.disconnect();
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #onIntersection(entries) {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) this.reached = Math.max(this.reached, this.tiles.indexOf(target) + 1);
    }
    this.onCount(this.tiles.length - this.reached);
  }
}
