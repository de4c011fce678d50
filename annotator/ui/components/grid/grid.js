// @ts-check
/**
 * Grid: many images, one class. A grid is decided as a whole: what Enter saves are the tiles that were on screen, each
 * as it was marked there, as one batch that is undone as one.
 */

import { Board } from "./board.js";
import { Choice } from "./choice.js";
import { Counting } from "./counting.js";
import { HINTS, KEYS } from "./words.js";
import { Page } from "../shared/page.js";
import { Picker } from "./picker.js";
import { onward } from "../shared/placeholder.js";
import { Surroundings } from "./surroundings.js";
import { afterPaint, el, keyButton } from "../shared/dom.js";
import { fix } from "../shared/fix.js";
import { keep, settle, takeKept } from "./kept.js";
import { cellsOf, restore, unbuild } from "./tiles.js";

const LOW = 4; // grids
const WANT = 6;
const USUAL = 24; // tiles, while no size of tiles is chosen

export default class GridPage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "grid", keys: KEYS, hints: HINTS });
    this.build();
    this.begin({
      path: "/api/grid",
      low: LOW,
      want: WANT,
      steady: 1,
      request: () => ({ ...this.choice.request, size: this.board.layout.room }),
      cells: cellsOf,
      waiting: () => this.session.outbox.cells(),
      first: /** @type {any} */ (takeKept(this.session.data.project, this.choice.request)),
      load: async (/** @type {any} */ grid) => {
        if (grid.fixed) settle(grid, await this.session.fetchItem(grid.fixed));
        grid.hidesPredictions = grid.waiting != null;
        return this.board.load(grid, this.named(grid.class)?.name ?? "");
      },
    });
  }

  build() {
    this.choice = new Choice(this.session.data);
    this.board = new Board({
      session: this.session,
      usual: USUAL,
      next: () => /** @type {any} */ (this.hand.queue.find((grid) => !grid.passedOn)),
      onFix: (id) => {
        keep(this.session.data.project, this.choice.request, this.board.view.grid, id);
        fix(id);
      },
      onMarks: (view) => this.around.deciding.showMarks(view, view.name),
      onSize: () => this.replan(unbuild),
      onBelow: (count) => this.around.deciding.showBelow(count),
    });
    this.counting = new Counting(this.session, () => this.showCounts());
    this.picker = new Picker({ onPick: (id) => this.choose(id), onBest: () => this.best(), onAudit: () => this.check(true) });
    this.around = new Surroundings({
      onPicker: () => this.openPicker(),
      onBest: () => this.best(),
      onStart: (start) => this.board.begin(start),
      onDecide: () => this.decide(),
      onLeave: () => (this.choice.audit ? this.check(false) : this.leaveSelection()),
    });
    this.recount = afterPaint(() => this.counting.ask());
    this.around.build(this.session, this.board, [this.picker.dialog, this.board.enlarged.dialog, this.board.burst.dialog]);
    this.around.setChoice(this.choice);
    this.recount();
  }

  /** @param {any} component */
  update(component) {
    super.update(component);
    if (!this.choice.offer(this.session.data)) return;
    this.around.setChoice(this.choice);
    this.restart();
  }

  showClasses() {
    const grid = this.board.view?.grid;
    if (grid) this.around.show(grid, this.named(grid.class), this.counting.counts);
  }

  pictured() {
    return this.board.pictured;
  }

  close() {
    this.board.close();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  press(key, event) {
    if (key !== "Shift" && this.picker.dialog.open) return this.picker.key(key, event);
    if (this.board.enlarged.isOpen || this.board.burst.isOpen) return this.board.key(key, event);
    const command = {
      Enter: () => this.decide(),
      "/": () => this.openPicker(),
      find: () => this.openPicker(),
      ".": () => this.best(),
    }[key];
    if (!command) return this.board.key(key, event);
    if (!event.repeat) command();
    return true;
  }

  /** @param {string} key */
  release(key) {
    this.board.released(key);
  }

  /** Decide every tile that is on screen, as it is marked. */
  decide() {
    if (!this.board.ready("all")) return;
    const { grid } = this.board.view;
    const [cells, copies] = [this.board.view.cells(), this.board.view.copies()];
    for (const tile of grid.tiles) if (tile.broken) this.hand.passed.add([tile.id, grid.class]);
    const source = grid.hidesPredictions ? "audit" : "grid";
    const given = { action: "batch", source, cells, run: grid.run, milliseconds: this.hand.looked };
    const entry = cells.length ? { ...given, ...(copies.length ? { copies } : {}) } : null;
    const all = [...cells, ...copies.map((copy) => copy.slice(0, 3))];
    this.perform(entry, { forward: () => this.goOn(grid, all), back: () => this.bringBack(grid, all) });
    this.board.keep(grid, (old) => old === this.hand.current || this.hand.queue.includes(old));
  }

  /** @param {import("./tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  goOn(grid, cells) {
    this.counting.add(cells, 1);
    restore(grid, cells);
    if (this.hand.current === grid) this.hand.advance();
    else this.hand.queue = this.hand.queue.filter((other) => other !== grid);
    this.recount();
  }

  /** @param {import("./tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  bringBack(grid, cells) {
    this.counting.add(cells, -1);
    restore(grid, cells);
    this.hand.bringBack(grid);
    this.recount();
  }

  /** @param {any} step @param {"undone" | "redone"} how */
  foreignStep({ entry }, how) {
    this.told(how, this.inWords(entry));
    this.recount();
  }

  openPicker() {
    this.picker.open(this.session.classes, this.board.view?.grid.class ?? this.choice.class);
    this.counting.ask();
  }

  /** @param {number} id */
  choose(id) {
    if (id === this.choice.class && this.hand.current) return;
    this.choice.take(id);
    this.restart();
  }

  best() {
    this.choice.takeBest(this.board.view?.grid.class ?? this.choice.class);
    this.restart();
  }

  leaveSelection() {
    this.choice.leaveSelection();
    this.around.setChoice(this.choice);
    this.restart();
  }

  /** Enter or leave the audit grid: cells sampled at random, predictions hidden. @param {boolean} on */
  check(on) {
    this.choice.check(on);
    this.around.setChoice(this.choice);
    this.restart();
    this.recount();
  }

  // What comes and goes

  restart() {
    // A redo would need grids that are gone.
    this.session.undone = [];
    for (const grid of this.hand.queue) unbuild(grid);
    this.hand.restart();
  }

  paint() {
    const grid = /** @type {import("./tiles.js").Grid | null} */ (/** @type {any} */ (this.hand.current));
    const view = (grid?.loaded && grid.view) || null;
    const words = grid ? "" : this.hand.news.empty;
    const class_ = this.named(grid?.class ?? this.choice.class);
    const instead = view ? null : `${class_?.id} ${words}`;
    if (view ? view === this.board.view : this.insteadShown === instead && !this.board.view) return;
    this.insteadShown = instead;
    if (view) {
      this.board.show(view);
      this.pin(grid);
      this.around.show(grid, this.named(grid.class), this.counting.counts);
      this.around.deciding.showMarks(view, view.name);
    } else {
      if (words) this.board.fill(this.nothing(words));
      else this.board.wait(this.board.layout.room);
      this.around.showNone(class_, this.counting.counts);
    }
    this.session.shown();
    if (view?.notShown) this.session.say(view.notShown);
  }

  /** @param {string} words */
  nothing(words) {
    const { audit } = this.choice;
    return el("div", { class: "nothing" },
      el("p", { class: "empty" }, words),
      audit ? el("div", { class: "tools" },
        el("a", { href: "certificate" }, "See the certificate"),
        el("button", { type: "button", onclick: () => this.check(false) }, "Leave the audit grid"))
      : el("div", { class: "tools" },
        keyButton("Next best class", ".", () => this.best()),
        keyButton("Choose a class", "/", () => this.openPicker()),
        ...(this.choice.selection ? [el("button", { type: "button", onclick: () => this.leaveSelection() }, "Leave the selection")] : [])),
      onward(this.session, audit ? [] : undefined));
  }

  /** Keep the class that the server chose until the person wants another. @param {import("./tiles.js").Grid} grid */
  pin(grid) {
    if (this.choice.class != null || this.choice.audit) return;
    this.choice.take(grid.class);
    this.hand.queue = this.hand.queue.filter((other) => other.class === grid.class);
  }

  /** @param {number | null | undefined} id */
  named(id) {
    return this.session.classes.find((class_) => class_.id === id);
  }

  showCounts() {
    if (!this.hand.current) this.hand.ask(); // the last grid of this class has been saved
    this.around.showCounts(this.counting.counts.get(this.board.view?.grid.class ?? this.choice.class));
    this.picker.news(this.counting.counts);
  }
}
