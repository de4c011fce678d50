// @ts-check
/**
 * Grid: many images, one class. A grid is decided as a whole: what Enter saves are the tiles that were on screen, each
 * as it was marked there, as one batch that is undone as one.
 */

import { GridBoard } from "./grid_board.js";
import { GridChoice } from "./grid_choice.js";
import { ClassCounts } from "./class_counts.js";
import { KEY_HELP, PAGE_HINTS } from "./grid_texts.js";
import { Page } from "../shared/page.js";
import { ClassPicker } from "./class_picker.js";
import { buildOnwardLinks } from "../shared/placeholder.js";
import { GridToolbar } from "./grid_toolbar.js";
import { afterPaint, el, keyButton } from "../shared/dom.js";
import { openInAnnotate } from "../shared/fix_link.js";
import { dropFixedTile, saveGrid, takeSavedGrid } from "./saved_grid.js";
import { discardElements, listCells, restoreMarks } from "./grid_tiles.js";

const LOW_WATER_GRIDS = 4; // grids
const TARGET_GRIDS = 6;
const DEFAULT_TILES = 24; // tiles, while no size of tiles is chosen

export default class GridPage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "grid", keys: KEY_HELP, hints: PAGE_HINTS });
    this.build();
    this.begin({
      path: "/api/grid",
      lowWater: LOW_WATER_GRIDS,
      targetCount: TARGET_GRIDS,
      steady: 1,
      request: () => ({ ...this.choice.request, size: this.board.layout.room }),
      cells: listCells,
      waiting: () => this.session.outbox.listUnsavedCells(),
      first: /** @type {any} */ (takeSavedGrid(this.session.data.project, this.choice.request)),
      load: async (/** @type {any} */ grid) => {
        if (grid.fixed) dropFixedTile(grid, await this.session.fetchItem(grid.fixed));
        grid.hidesPredictions = grid.waiting != null;
        return this.board.load(grid, this.findClass(grid.class)?.name ?? "");
      },
    });
  }

  build() {
    this.choice = new GridChoice(this.session.data);
    this.board = new GridBoard({
      session: this.session,
      usual: DEFAULT_TILES,
      next: () => /** @type {any} */ (this.items.queue.find((grid) => !grid.passedOn)),
      onFix: (id) => {
        saveGrid(this.session.data.project, this.choice.request, this.board.view.grid, id);
        openInAnnotate(id);
      },
      onMarks: (view) => this.toolbar.saveBar.showMarks(view, view.name),
      onSize: () => this.refetchQueue(discardElements),
      onBelow: (count) => this.toolbar.saveBar.showBelow(count),
    });
    this.classCounts = new ClassCounts(this.session, () => this.showCounts());
    this.picker = new ClassPicker({ onPick: (id) => this.choose(id), onBest: () => this.best(), onAudit: () => this.check(true) });
    this.toolbar = new GridToolbar({
      onPicker: () => this.openPicker(),
      onBest: () => this.best(),
      onStart: (start) => this.board.begin(start),
      onDecide: () => this.decide(),
      onLeave: () => (this.choice.audit ? this.check(false) : this.leaveSelection()),
    });
    this.recount = afterPaint(() => this.classCounts.ask());
    this.toolbar.build(this.session, this.board, [this.picker.dialog, this.board.tileZoom.dialog, this.board.eventImages.dialog]);
    this.toolbar.setChoice(this.choice);
    this.recount();
  }

  /** @param {any} component */
  update(component) {
    super.update(component);
    if (!this.choice.offer(this.session.data)) return;
    this.toolbar.setChoice(this.choice);
    this.restart();
  }

  showClasses() {
    const grid = this.board.view?.grid;
    if (grid) this.toolbar.show(grid, this.findClass(grid.class), this.classCounts.counts);
  }

  getHistoryImage() {
    return this.board.historyImage;
  }

  close() {
    this.board.close();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  onKey(key, event) {
    if (key !== "Shift" && this.picker.dialog.open) return this.picker.key(key, event);
    if (this.board.tileZoom.isOpen || this.board.eventImages.isOpen) return this.board.key(key, event);
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
  onKeyUp(key) {
    this.board.onKeyUp(key);
  }

  /** Decide every tile that is on screen, as it is marked. */
  decide() {
    const saved = this.board.listSaved();
    if (!saved) return;
    const { grid } = this.board.view;
    const { cells, copies } = saved;
    for (const tile of grid.tiles) if (tile.broken) this.items.passed.add([tile.id, grid.class]);
    const source = grid.hidesPredictions ? "audit" : "grid";
    const given = { action: "batch", source, cells, run: grid.run, milliseconds: this.items.viewMilliseconds };
    const entry = cells.length ? { ...given, ...(copies.length ? { copies } : {}) } : null;
    const all = [...cells, ...copies.map((copy) => copy.slice(0, 3))];
    this.perform(entry, { forward: () => this.goOn(grid, all), back: () => this.bringBack(grid, all) });
    this.board.keep(grid, (old) => old === this.items.current || this.items.queue.includes(old));
  }

  /** @param {import("./grid_tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  goOn(grid, cells) {
    this.classCounts.add(cells, 1);
    restoreMarks(grid, cells);
    if (this.items.current === grid) this.items.advance();
    else this.items.queue = this.items.queue.filter((other) => other !== grid);
    this.recount();
  }

  /** @param {import("./grid_tiles.js").Grid} grid @param {any[][]} cells as they were decided */
  bringBack(grid, cells) {
    this.classCounts.add(cells, -1);
    restoreMarks(grid, cells);
    this.items.bringBack(grid);
    this.recount();
  }

  /** @param {any} step @param {"undone" | "redone"} how */
  onForeignStep({ entry }, how) {
    this.announceUndo(how, this.describeDecision(entry));
    this.recount();
  }

  openPicker() {
    this.picker.open(this.session.classes, this.board.view?.grid.class ?? this.choice.class);
    this.classCounts.ask();
  }

  /** @param {number} id */
  choose(id) {
    if (id === this.choice.class && this.items.current) return;
    this.choice.take(id);
    this.restart();
  }

  best() {
    this.choice.takeBest(this.board.view?.grid.class ?? this.choice.class);
    this.restart();
  }

  leaveSelection() {
    this.choice.leaveSelection();
    this.toolbar.setChoice(this.choice);
    this.restart();
  }

  /** Enter or leave the audit grid: cells sampled at random, predictions hidden. @param {boolean} on */
  check(on) {
    this.choice.check(on);
    this.toolbar.setChoice(this.choice);
    this.restart();
    this.recount();
  }

  // What comes and goes

  restart() {
    // A redo would need grids that are gone.
    this.session.undone = [];
    for (const grid of this.items.queue) discardElements(grid);
    this.items.restart();
  }

  paint() {
    const grid = /** @type {import("./grid_tiles.js").Grid | null} */ (/** @type {any} */ (this.items.current));
    const view = (grid?.loaded && grid.view) || null;
    const words = grid ? "" : this.items.news.empty;
    const class_ = this.findClass(grid?.class ?? this.choice.class);
    const instead = view ? null : `${class_?.id} ${words}`;
    if (view ? view === this.board.view : this.insteadShown === instead && !this.board.view) return;
    this.insteadShown = instead;
    if (view) {
      this.board.show(view);
      this.pin(grid);
      this.toolbar.show(grid, this.findClass(grid.class), this.classCounts.counts);
      this.toolbar.saveBar.showMarks(view, view.name);
    } else {
      if (words) this.board.fill(this.buildEmpty(words));
      else this.board.wait(this.board.layout.room);
      this.toolbar.showNone(class_, this.classCounts.counts);
    }
    this.session.onPictureShown();
    if (view?.notShown) this.session.showMessage(view.notShown);
  }

  /** @param {string} words */
  buildEmpty(words) {
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
      buildOnwardLinks(this.session, audit ? [] : undefined));
  }

  /** Keep the class that the server chose until the person wants another. @param {import("./grid_tiles.js").Grid} grid */
  pin(grid) {
    if (this.choice.class != null || this.choice.audit) return;
    this.choice.take(grid.class);
    this.items.queue = this.items.queue.filter((other) => other.class === grid.class);
  }

  /** @param {number | null | undefined} id */
  findClass(id) {
    return this.session.classes.find((class_) => class_.id === id);
  }

  showCounts() {
    if (!this.items.current) this.items.fetchMore(); // the last grid of this class has been saved
    this.toolbar.showCounts(this.classCounts.counts.get(this.board.view?.grid.class ?? this.choice.class));
    this.picker.news(this.classCounts.counts);
  }
}
