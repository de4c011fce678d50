// @ts-check
/** What a person has chosen to look at in the grid: a class, a size, perhaps a selection from the map. It outlives a reload. */

export const SIZES = [12, 24, 48];

export class Choice {
  /** @param {{project: string, classes: {id: number}[], selection: {id: string, count: number} | null}} data */
  constructor(data) {
    this.store = `annotator:${data.project}:grid`;
    /** @type {any} */
    let kept = {};
    try {
      kept = JSON.parse(localStorage.getItem(this.store) ?? "{}") ?? {};
    } catch {
      // Storage that is blocked or damaged: as on the first visit.
    }
    /** @type {number} */
    this.size = SIZES.includes(kept.size) ? kept.size : 24;
    /** @type {number | null} null: whichever class the engine finds best */
    this.class = data.classes.some((one) => one.id === kept.class) ? kept.class : null;
    /** @type {number | null} a class that was enough of, when the next best one is asked for */
    this.but = null;
    /** @type {string | undefined} a selection that was left; the address may still name it for a while */
    this.left = undefined;
    this.offer(data.selection);
  }

  /** What the route is asked. */
  get request() {
    return { class: this.class, but: this.but, size: this.size, selection: this.selection?.id };
  }

  /** @param {number} id */
  take(id) {
    this.class = id;
    this.but = null;
    this.#keep();
  }

  /** Which class is worth most is the engine's to say; not the one there is now. */
  takeBest() {
    this.but = this.class;
    this.class = null;
    this.#keep();
  }

  /** @param {number} size */
  resize(size) {
    this.size = size;
    this.#keep();
  }

  /** The page comes with this selection. @param {{id: string, count: number} | null} selection @returns {boolean} whether it is another one */
  offer(selection) {
    const before = this.selection?.id;
    /** @type {{id: string, count: number} | null} */
    this.selection = selection && selection.id !== this.left ? selection : null;
    return this.selection?.id !== before;
  }

  leaveSelection() {
    this.left = this.selection?.id;
    this.selection = null;
    const url = new URL(window.location.href);
    url.searchParams.delete("selection");
    window.history.replaceState(window.history.state, "", url);
  }

  #keep() {
    try {
      localStorage.setItem(this.store, JSON.stringify({ size: this.size, class: this.class }));
    } catch {
      // Then a reload begins with the engine's choice.
    }
  }
}
