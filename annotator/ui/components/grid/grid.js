// @ts-check
/**
 * Grid: many images, one class. A grid is decided as a whole: what Enter saves are the tiles that were on screen, each
 * as it was marked there, as one batch that is undone as one.
 */

import { Ahead } from "./ahead.js";
import { Choice, SIZES } from "./choice.js";
import { Counting } from "./counting.js";
import { afterPaint, el, keyButton } from "../shared/dom.js";
import { Enlarged } from "./enlarged.js";
import { HINTS, KEYS } from "./words.js";
import { Hand } from "../shared/hand.js";
import { Heatmaps } from "../shared/heatmaps.js";
import { Layout } from "./layout.js";
import { paintable } from "./painting.js";
import { Peek } from "./peek.js";
import { Picker } from "./picker.js";
import { Session } from "../shared/session.js";
import { Surroundings } from "./surroundings.js";
import { TILE_KEYS, Tiles, restore, skeleton, unbuild } from "./tiles.js";

const LOW = 4; // grids; each is 12 to 48 pictures
const WANT = 6;
const KEPT_BUILT = 12; // decided grids whose elements are kept for an undo
const HIDDEN = 100; // milliseconds after which a grid counts as drawn in a window that draws nothing

/** @param {any} component */
export function mount(component) {
  return new GridPage(component);
}

class GridPage {
  /** @param {any} component */
  constructor(component) {
    this.session = new Session(component, {
      page: "grid",
      keys: KEYS,
      hints: HINTS,
      onKey: (key, event) => this.key(key, event),
      onKeyUp: (key) => key === "Shift" && this.peek.hold(false),
      onUndo: (step, how) => this.told(step, how),
    });
    const { api, root, data } = this.session;
    this.choice = new Choice(data);
    /** @type {Tiles | null} what is on screen */
    this.view = null;
    /** Whether it has been drawn: no key is about tiles that nobody can have seen. */
    this.seen = false;
    /** @type {import("./tiles.js").Grid[]} */
    this.built = [];
    this.heatmaps = new Heatmaps(api, () => this.peek.show());
    this.counting = new Counting(this.session, () => this.showCounts());
    this.picker = new Picker({ onPick: (id) => this.choose(id), onBest: () => this.best() });
    this.enlarged = new Enlarged({
      url: (path) => api.url(path),
      onMark: (state) => this.mark(this.view.grid.at, state),
      onTurn: () => this.press(this.view.grid.at),
      onMove: (by) => this.enlarge(this.view.grid.at + by),
      onClose: () => this.peek.show(),
    });
    this.peek = new Peek({
      heatmaps: this.heatmaps,
      enlarged: this.enlarged,
      view: () => this.view,
      say: (text) => this.session.say(text),
    });
    this.around = new Surroundings({
      sizes: SIZES,
      onPicker: () => this.openPicker(),
      onBest: () => this.best(),
      onSize: (size) => this.resize(size),
      onStart: (start) => this.begin(start),
      onDecide: () => this.decide(),
      onLeave: () => this.leaveSelection(),
    });
    this.host = el("div", { class: "host" });
    this.host.addEventListener("pointerover", (event) => this.peek.point(event));
    this.host.addEventListener("pointerleave", () => this.peek.point(null));
    this.host.addEventListener("pointerdown", () => this.host.classList.remove("keyed"));
    this.stopPainting = paintable(this.host, root, {
      press: (index) => this.press(index),
      paint: (index, state) => this.mark(index, state),
    });
    this.layout = new Layout(this.host, this.choice.size);
    this.ahead = new Ahead(this.host, () => this.next());
    this.recount = afterPaint(() => this.counting.ask());
    this.around.build(this.session, this.host, [this.picker.dialog, this.enlarged.dialog]);
    this.around.setSize(this.choice.size);
    this.around.setSelection(this.choice.selection);
    this.hand = this.session.hand = new Hand({
      session: this.session,
      mode: "grid",
      path: "/api/grid",
      low: LOW,
      want: WANT,
      request: () => this.choice.request,
      have: (grids) => [...grids.flatMap((grid) => grid.tiles.map((tile) => [tile.id, grid.class])), ...this.session.outbox.cells()],
      load: (grid) => this.load(/** @type {any} */ (grid)),
      onShow: () => this.show(),
      onNews: () => this.showNews(),
    });
    this.show();
    this.recount();
  }

  /** After a rerun of the page. @param {any} component */
  update(component) {
    const changed = this.session.fresh(component);
    if (this.choice.offer(this.session.data.selection)) {
      this.around.setSelection(this.choice.selection);
      this.restart();
    }
    if (changed && this.view) this.around.show(this.view.grid, this.named(this.view.grid.class), this.counting.counts);
  }

  unmount() {
    this.stopPainting();
    this.layout.close();
    this.heatmaps.close();
    this.session.close();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    if (key === "Shift") {
      this.peek.hold(true);
      return true;
    }
    if (this.picker.dialog.open) return this.picker.key(key, event);
    if (this.enlarged.isOpen) return this.enlarged.key(key, event);
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.layout.columns, ArrowDown: this.layout.columns };
    const command = {
      Enter: () => this.decide(),
      " ": () => this.view && this.press(this.view.grid.at),
      "/": () => this.openPicker(),
      find: () => this.openPicker(),
      ".": () => this.best(),
      ";": () => this.view && this.begin(this.view.grid.start === "yes" ? "no" : "yes"),
      "<": () => this.resize(SIZES[SIZES.indexOf(this.choice.size) - 1]),
      ">": () => this.resize(SIZES[SIZES.indexOf(this.choice.size) + 1]),
      PageUp: () => this.view && this.enlarge(this.peek.pointed ?? this.view.grid.at),
    }[key];
    const tile = TILE_KEYS.indexOf(key);
    if (moves[key]) this.moveBy(moves[key]);
    else if (command) event.repeat || command();
    else if (tile >= 0) event.repeat || this.press(tile);
    else return false;
    return true;
  }

  /** Turn a tile. @param {number} index @returns {number | null} what it is now */
  press(index) {
    if (!this.ready() || index >= this.view.grid.tiles.length) return null;
    this.view.moveTo(index);
    this.view.press(index);
    this.marked(index);
    return this.view.grid.tiles[index].mark;
  }

  /** @param {number} index @param {number} state */
  mark(index, state) {
    if (!this.ready() || this.view.grid.tiles[index]?.mark === state) return;
    this.view.mark(index, state);
    this.marked(index);
  }

  /** @param {number} index */
  marked(index) {
    this.around.showMarks(this.view, this.name);
    if (this.enlarged.isOpen) this.enlarged.marked(this.view.grid.tiles[index].mark);
  }

  /** @param {number} by */
  moveBy(by) {
    if (!this.view) return;
    const { grid } = this.view;
    if (grid.at + by < 0 || grid.at + by >= grid.tiles.length) return;
    this.host.classList.add("keyed");
    this.peek.forget();
    this.view.moveTo(grid.at + by);
    this.view.focus();
    this.peek.show();
  }

  /** @param {"yes" | "no"} start */
  begin(start) {
    if (!this.view || this.view.grid.start === start) return;
    this.view.turn();
    this.around.showMarks(this.view, this.name);
  }

  /** Save every tile that is on screen, as it is marked there. */
  decide() {
    if (!this.ready()) return;
    const grid = this.view.grid;
    const cells = this.view.cells();
    for (const tile of grid.tiles) if (tile.broken) this.hand.passed.add([tile.id, grid.class]);
    const screen = {
      back: () => this.bringBack(grid, cells),
      again: () => this.goOn(grid, cells),
    };
    if (cells.length) {
      const entry = { action: "batch", source: "grid", cells, run: grid.run, milliseconds: this.hand.looked };
      this.session.decide(entry, screen);
    } else this.session.visit(screen);
    this.goOn(grid, cells);
    this.keep(grid);
  }

  /** @param {import("./tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  goOn(grid, cells) {
    this.hand.count(0, cells.length);
    this.counting.add(cells, 1);
    restore(grid, cells);
    if (this.hand.current === grid) this.hand.advance();
    else this.hand.queue = this.hand.queue.filter((other) => other !== grid);
    this.recount();
  }

  /** @param {import("./tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  bringBack(grid, cells) {
    this.hand.count(0, -cells.length);
    this.counting.add(cells, -1);
    restore(grid, cells);
    this.hand.bringBack(grid);
    this.recount();
  }

  /** An undo or redo of what was decided before a reload, or on another page: it is not on screen. @param {any} step @param {"undone" | "redone"} how */
  told({ entry }, how) {
    const words = how === "undone" ? "Taken back" : "Decided again";
    const name = this.named(entry?.class ?? entry?.cells?.[0]?.[1])?.name;
    const about = name ? ` about ${name}` : "";
    if (entry?.cells) {
      const count = (/** @type {number} */ state) => entry.cells.filter((/** @type {any[]} */ cell) => cell[2] === state).length;
      this.session.say(`${words}: ${entry.cells.length} answers${about} (${count(1)} yes, ${count(-1)} no, ${count(0)} unsure).`);
    } else this.session.say(`${words}: one decision${about}, from another page.`);
    this.recount();
  }

  openPicker() {
    this.picker.open(this.session.classes, this.view?.grid.class ?? this.choice.class);
    this.counting.ask();
  }

  /** @param {number} id */
  choose(id) {
    if (id === this.choice.class && this.hand.current) return;
    this.choice.take(id);
    this.restart();
  }

  best() {
    this.choice.takeBest();
    this.restart();
  }

  /** @param {number | undefined} size */
  resize(size) {
    if (!size || size === this.choice.size) return;
    this.choice.resize(size);
    this.around.setSize(size);
    this.layout.resize(size);
    this.restart();
  }

  leaveSelection() {
    this.choice.leaveSelection();
    this.around.setSelection(null);
    this.restart();
  }

  /** @param {number} index */
  enlarge(index) {
    if (!this.ready() || index < 0 || index >= this.view.grid.tiles.length) return;
    this.view.moveTo(index);
    this.enlarged.show(this.view.grid.tiles[index], this.view.parts[index].picture, this.name);
    this.peek.show();
  }

  // What comes and goes

  /** Build a grid and decode its pictures, before it is needed. @param {import("./tiles.js").Grid} grid */
  load(grid) {
    grid.view ??= new Tiles(grid, {
      url: (path) => this.session.api.url(path),
      name: this.named(grid.class)?.name ?? "",
      onPress: (index) => this.press(index),
      onEnlarge: (index) => this.enlarge(index),
    });
    grid.view.loaded.then(() => this.ahead.prepare());
    return grid.view.loaded;
  }

  /** What Enter would bring, as far as it can lie ready: where the page scrolls, not all of a grid is in sight anyway. */
  next() {
    if (!this.view || this.layout.scrolls) return null;
    const grid = this.hand.queue.find((one) => !one.passedOn);
    return (grid?.loaded && grid.view) || null;
  }

  /** Of what was decided a while ago only the answers are kept. @param {import("./tiles.js").Grid} grid */
  keep(grid) {
    this.built = [...this.built.filter((other) => other !== grid), grid];
    if (this.built.length <= KEPT_BUILT) return;
    const old = /** @type {any} */ (this.built.shift());
    if (old === this.hand.current || this.hand.queue.includes(old)) return;
    unbuild(old);
  }

  restart() {
    // What was taken back would be decided again with a grid that is no longer there.
    this.session.undone = [];
    for (const grid of this.hand.queue) unbuild(grid);
    this.hand.restart();
  }

  /** A key is about the tiles on screen; while they are not there, or not yet drawn, it is about nothing. */
  ready() {
    if (this.view && this.seen) return true;
    if (this.hand.current && !this.view) this.session.say("The pictures are still on their way.");
    return false;
  }

  show() {
    const grid = /** @type {import("./tiles.js").Grid | null} */ (/** @type {any} */ (this.hand?.current ?? null));
    const view = (grid?.loaded && grid.view) || null;
    const words = !grid && this.hand ? this.hand.news.empty : "";
    if (view ? view === this.view : this.said === words && !this.view) return;
    const focused = this.host.contains(this.session.root.activeElement);
    this.view = view;
    this.said = view ? null : words;
    this.seen = false;
    this.peek.resting = false;
    if (this.enlarged.isOpen) this.enlarged.dialog.close();
    if (view) {
      this.ahead.show(view);
      // Where the page scrolls, "Decide" is pressed at the end of one grid, and the next is looked at from its beginning.
      if (this.layout.scrolls && this.host.getBoundingClientRect().top < 0) this.host.scrollIntoView();
      this.pin(grid);
      this.around.show(grid, this.named(grid.class), this.counting.counts);
      this.around.showMarks(view, this.name);
      this.draw(view, focused);
    } else {
      this.ahead.fill(words ? this.nothing(words) : skeleton(this.choice.size));
      this.around.showNone(this.named(this.choice.class), this.counting.counts);
    }
    this.session.shown();
  }

  /** From the frame on in which the grid is drawn, keys are about it. @param {Tiles} view @param {boolean} focused */
  draw(view, focused) {
    const drawn = () => {
      if (this.view !== view || this.seen) return;
      this.seen = true;
      if (focused) view.focus();
      this.peek.show();
    };
    requestAnimationFrame(() => window.setTimeout(drawn));
    window.setTimeout(drawn, HIDDEN);
  }

  /** @param {string} words */
  nothing(words) {
    return el("div", { class: "nothing" },
      el("p", { class: "empty" }, words),
      el("div", { class: "tools" },
        keyButton("Next best class", ".", () => this.best()),
        keyButton("Choose a class", "/", () => this.openPicker()),
        ...(this.choice.selection ? [el("button", { type: "button", onclick: () => this.leaveSelection() }, "Leave the selection")] : [])));
  }

  /** The class that was found to be best stays until the person wants another: it never changes under their hands. @param {import("./tiles.js").Grid} grid */
  pin(grid) {
    if (this.choice.class != null) return;
    this.choice.take(grid.class);
    this.hand.queue = this.hand.queue.filter((other) => other.class === grid.class);
  }

  showNews() {
    if (!this.hand?.current) this.show();
  }

  get name() {
    return this.named(this.view?.grid.class)?.name ?? "";
  }

  /** @param {number | null | undefined} id */
  named(id) {
    return this.session.classes.find((one) => one.id === id);
  }

  showCounts() {
    if (!this.hand?.current) this.hand?.ask(); // what was the last grid of this class has been saved
    this.around.showCounts(this.counting.counts.get(this.view?.grid.class ?? this.choice.class));
    this.picker.news(this.counting.counts);
  }
}
