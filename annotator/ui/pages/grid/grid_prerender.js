// @ts-check
/**
 * The grid on screen and, unseen under it, the one that comes next: laid out, painted and rastered already, so that
 * Enter only swaps which of the two is seen. The old one is removed a moment later, because removing a layer makes the
 * browser repaint others in that frame.
 */

const PRERENDER_DELAY_MILLISECONDS = 120; // milliseconds a grid is on screen until the next one is laid out

/** @typedef {import("./grid_tiles.js").GridTiles} Tiles */

export class GridPrerender {
  /** @param {HTMLElement} host @param {() => Tiles | null} next the grid that Enter would bring, null while there is none */
  constructor(host, next) {
    this.host = host;
    this.next = next;
    /** @type {Tiles | null} on screen */
    this.seen = null;
    /** @type {Tiles | null} in the host as well, and not seen */
    this.unseen = null;
    this.timer = 0;
  }

  /** Lay out the next grid in a moment. */
  prepare() {
    this.timer ||= window.setTimeout(() => this.#prerender(), PRERENDER_DELAY_MILLISECONDS);
  }

  /** Put this on screen, and nothing else. @param {Tiles} view */
  show(view) {
    const before = this.seen;
    before?.appear(false);
    view.appear(true);
    if (view === this.unseen) this.unseen = before;
    else {
      this.host.replaceChildren(view.element);
      this.unseen = null;
    }
    this.seen = view;
    clearTimeout(this.timer);
    this.timer = 0;
    this.prepare();
  }

  /** Put something on screen that is no grid. @param {HTMLElement} element */
  fillHost(element) {
    this.seen?.appear(false);
    this.host.replaceChildren(element);
    this.seen = this.unseen = null;
  }

  #prerender() {
    this.timer = 0;
    const next = this.seen && this.next();
    if (next === this.unseen) return;
    this.unseen?.element.remove();
    this.unseen = next;
    if (!next) return;
    this.host.append(next.element);
  }
}
