// @ts-check
/** How many tiles stand side by side: as many as make them largest; on small screens few, and the page scrolls. */

const PHONE = 700; // CSS pixels
const DESK = 1000;
const SHAPE = 1.2; // width by height of what most pictures fit into

export class Layout {
  /** @param {HTMLElement} host @param {number} size tiles */
  constructor(host, size) {
    this.host = host;
    this.size = size;
    this.columns = 1;
    this.scrolls = false;
    this.observer = new ResizeObserver(() => this.#lay());
    this.observer.observe(host);
  }

  /** @param {number} size */
  resize(size) {
    this.size = size;
    this.#lay();
  }

  close() {
    this.observer.disconnect();
  }

  #lay() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width) return;
    const few = window.innerWidth < PHONE ? 3 : window.innerWidth < DESK ? 4 : 0;
    this.scrolls = few > 0;
    this.columns = few || columnsFor(this.size, width, height);
    this.host.style.setProperty("--columns", String(this.columns));
    this.host.style.setProperty("--rows", String(Math.ceil(this.size / this.columns)));
  }
}

/** @param {number} size @param {number} width @param {number} height CSS pixels */
function columnsFor(size, width, height) {
  const side = (/** @type {number} */ columns) => Math.min(width / columns / SHAPE, height / Math.ceil(size / columns));
  let best = 1;
  for (let columns = 2; columns <= size; columns += 1) {
    if (size % columns === 0 && side(columns) > side(best)) best = columns;
  }
  return best;
}
