// @ts-check
/**
 * The grid on screen and, unseen over it, the one that comes next: laid out, painted and rastered already, so that
 * Enter changes no more than which of the two is seen.
 */

import { afterPaint } from "../shared/dom.js";

export class Ahead {
  /** @param {HTMLElement} host @param {() => import("./tiles.js").Tiles | null} next the grid that Enter would bring, null while there is none */
  constructor(host, next) {
    this.host = host;
    this.next = next;
    /** @type {import("./tiles.js").Tiles | null} what lies ready */
    this.view = null;
    this.prepare = afterPaint(() => this.#prepare());
  }

  /** Put this on screen, and nothing else. @param {import("./tiles.js").Tiles} view */
  show(view) {
    view.appear(true);
    if (view === this.view) for (const other of [...this.host.children]) other === view.element || other.remove();
    else this.host.replaceChildren(view.element);
    this.view = null;
    this.prepare();
  }

  /** Put something on screen that is no grid. @param {HTMLElement} element */
  fill(element) {
    this.host.replaceChildren(element);
    this.view = null;
  }

  #prepare() {
    const next = this.next();
    if (next === this.view) return;
    this.view?.element.remove();
    this.view = next;
    if (!next) return;
    next.appear(false);
    this.host.append(next.element);
  }
}
