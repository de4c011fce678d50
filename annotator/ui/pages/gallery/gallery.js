// @ts-check
/**
 * Gallery: all images as thumbnails, filtered and sorted; many are selected and changed in one batch, which is undone as
 * one. The page leases nothing: what two people say of a cell at the same time is both kept, the newest holds.
 */

import { FieldChart } from "./field_chart.js";
import { ExampleDialog } from "./example_dialog.js";
import { FilterBar } from "./filter_bar.js";
import { SimilaritySearch } from "./similarity_search.js";
import { FlagDialog } from "../shared/flag.js";
import { JumpDialog } from "./jump_dialog.js";
import { Listing } from "./listing.js";
import { Page } from "../shared/page.js";
import { AnswerPanel } from "./answer_panel.js";
import { PointerSelection } from "./pointer_selection.js";
import { Selection } from "./selection.js";
import { TileSizeField } from "./tile_size_field.js";
import { NearDuplicates } from "./near_duplicates.js";
import { TileView } from "./tile_view.js";
import { KEY_HELP, PAGE_HINTS, describeChange } from "./gallery_texts.js";
import { ScrollMemory } from "./scroll_memory.js";
import { HIDDEN_WORDS, afterPaint, capitalize, el, formatCount, keyButton } from "../shared/dom.js";
import { openInAnnotate } from "../shared/fix_link.js";
import { isTyping } from "../shared/keys.js";

/** @typedef {import("./listing.js").Image} Image */

const MOST_FLAGS = 500; // each is a decision of its own
const REFRESH_MILLISECONDS = 8000; // milliseconds between two readings of what is in sight

export default class GalleryPage extends Page {
  /** @param {any} component */
  constructor(component) {
    super(component, { name: "gallery", keys: KEY_HELP, hints: PAGE_HINTS });
    /** Where the cursor is to go once there is a list. @type {number | null} */
    this.coming = null;
    this.build();
    this.filter.set(this.filter.address.read(window.location.search));
    this.scrollMemory = new ScrollMemory(this.session.data.project);
    this.returning = () => this.showAddress();
    this.leaving = () => this.saveScroll();
    window.addEventListener("popstate", this.returning);
    window.addEventListener("pagehide", this.leaving);
    this.renewing = window.setInterval(() => document.hidden || this.listing.refresh(), REFRESH_MILLISECONDS);
    this.startListing();
  }

  build() {
    const { session } = this;
    const { data } = session;
    const say = (/** @type {string} */ text) => session.showMessage(text);
    this.listing = new Listing({
      session, request: () => this.filter.request, onNews: () => this.onNews(), onMoved: () => this.findAgain(),
    });
    this.selection = new Selection({ listing: this.listing, onChange: () => this.mark(), say });
    this.tileSize = new TileSizeField(data.project, () => this.onResize());
    this.view = new TileView({
      session, listing: this.listing, size: () => this.tileSize.pixels, marks: () => this.selection, onMove: () => this.pointerSelection.onScroll(),
    });
    this.pointerSelection = new PointerSelection(this.view.scroller, {
      indexOf: (box) => Number(/** @type {HTMLElement} */ (box).dataset.index),
      meets: (from, to) => this.view.meets(from, to),
      onClick: (index, how) => this.onTileClick(index, how),
      onOpen: (index) => this.open(index),
      onBegin: (index, keep) => this.selection.begin(index, keep),
      onRectangle: (indexes) => this.selection.rectangle(indexes),
    });
    this.exampleDialog = new ExampleDialog({ session, texts: data.no_texts, onFound: (example) => this.filter.showExample(example) });
    this.filter = new FilterBar({
      classes: session.classes, conditions: data.filters, sorts: data.sorts, facts: data.facts, say, nameOf: (example) => this.exampleDialog.describeExample(example),
      onChange: (view) => {
        this.filter.address.push(view);
        this.startListing();
      },
    });
    this.similaritySearch = new SimilaritySearch({ session, selection: this.selection, filter: this.filter, example: this.exampleDialog, onLeave: () => this.saveScroll() });
    this.chart = new FieldChart({
      facts: this.filter.factNames, ask: (fact) => session.api.post("/api/gallery/counts", { ...this.filter.requestBut(fact), fact }),
      givenOf: (fact) => this.filter.givenOf(fact), give: (fact, value) => this.filter.give(fact, value),
    });
    this.nearDuplicates = new NearDuplicates({
      ask: (image) => session.outbox.flush().then(() => session.api.post("/api/twins", { image })).catch(() => null),
      isBeside: () => this.filter.request.sort === "twins", onBeside: (image) => this.showBeside(image),
      onKeep: ({ name }, twins) => this.flag(twins.map(({ id }) => id), `twin of ${name}`, `${formatCount(twins.length, "twin")} of ${name} set aside`, "aside"),
      onAnswer: (image, cells) => this.answer(cells, `${formatCount(cells.length, "answer")} of ${image.name} on its twins`), say,
      mayAnswer: data.may_answer,
    });
    this.panel = new AnswerPanel({
      onSet: (states) => this.set(states), onClear: () => this.selection.clear(), onAll: () => this.selection.all(),
      onOpen: () => this.open(this.selection.at), onFlag: () => this.openFlag(),
    }, this.nearDuplicates.element);
    this.panel.setClasses(session.classes);
    this.panel.element.hidden = !data.may_answer;
    this.flagDialog = new FlagDialog((note) => this.flag([...this.selection.ids], note, `${note ? `flag "${note}"` : "flag removed"} on ${formatCount(this.selection.ids.size, "image")}`),
      (note) => this.flag([...this.selection.ids], note, `${formatCount(this.selection.ids.size, "image")} set aside: ${note}`, "aside"));
    this.jumpDialog = new JumpDialog((index) => this.goTo(index));
    this.saved = afterPaint(() => this.readWhenSaved());
    this.placeElements();
  }

  /** Put everything on the page. */
  placeElements() {
    const { session } = this;
    this.count = el("p", { class: "count", role: "status" });
    this.updateButton = keyButton("Update list", "r", () => this.startListing(true), { hidden: true, title: "Images have changed since: update" });
    this.empty = el("div", { class: "nothing", hidden: true });
    this.chartButton = keyButton("Chart", "b", () => this.showChart(), { title: "Images by a fact, as bars", "aria-expanded": "false", hidden: !this.filter.factNames.length });
    const head = el("div", { class: "head" }, el("h2", {}, "Gallery"), this.count, this.updateButton, this.filter.order, this.similaritySearch.gridButton, this.tileSize.element,
      ...this.similaritySearch.buttons, this.chartButton, keyButton("Go to", "Ctrl+G", () => this.openJump(), { "aria-keyshortcuts": "Control+G g" }), session.toolbar);
    session.element.classList.add("gallery");
    session.element.replaceChildren(
      head, this.filter.element, this.chart.element,
      el("div", { class: "work" }, el("div", { class: "left" }, this.view.element, this.empty), this.panel.element),
      el("div", { class: "under" }, session.words, session.statusLine.element), session.hints.element, session.help.dialog, this.jumpDialog.dialog, this.flagDialog.element, this.exampleDialog.element);
    this.exampleDialog.catchDrops(session.element);
  }

  close() {
    this.saveScroll();
    clearInterval(this.renewing);
    window.removeEventListener("popstate", this.returning);
    window.removeEventListener("pagehide", this.leaving);
    this.view.close();
    this.pointerSelection.close();
    this.listing.close();
  }

  /** @param {any} component */
  update(component) {
    super.update(component);
    this.showAddress();
  }

  showClasses() {
    const before = JSON.stringify(this.filter.request);
    this.filter.setClasses(this.session.classes);
    this.panel.setClasses(this.session.classes);
    this.view.tiles.redraw();
    if (JSON.stringify(this.filter.request) !== before) this.startListing();
  }

  getHistoryImage() {
    return this.selection.current;
  }

  showComments() {
    this.view.tiles.redraw();
    this.saved();
  }

  /** @param {number} id */
  imageName(id) {
    return this.listing.known().find((image) => image.id === id)?.name ?? "";
  }

  // Which images are shown

  /** Another filter or order, or the same list anew. @param {boolean} [anew] the cursor stays on its image */
  startListing(anew = false) {
    const before = anew ? this.selection.current : null;
    const at = anew ? this.selection.at : 0;
    this.view.tiles.first = this.filter.about;
    this.similaritySearch.follow();
    if (!anew) this.selection.reset();
    this.listing.restart();
    this.chart.refresh();
    if (anew) this.goTo(at);
    else this.view.scroller.moveTo(0);
    const wanted = before?.id ?? (anew ? null : this.scrollMemory.recall());
    if (wanted != null) this.showImage(wanted);
  }

  /** The browser went to another entry of its history. */
  showAddress() {
    const view = this.filter.address.read(window.location.search);
    if (JSON.stringify(view) === JSON.stringify(this.filter.view)) return;
    this.filter.set(view);
    this.startListing();
  }

  /** The server lists anew, after it was started again perhaps: stay with the image at the cursor. */
  findAgain() {
    const { current } = this.selection;
    if (current) this.showImage(current.id);
  }

  /** @param {number} image */
  async showImage(image) {
    const place = await this.listing.place(image);
    if (place == null) return;
    if (this.listing.total == null) this.coming = place;
    else this.goTo(place);
  }

  onNews() {
    const { total, trouble, changed } = this.listing;
    const all = Math.max(this.session.data.images, total ?? 0);
    const shown = total == null ? "Loading images..." : total < all || this.filter.active ? `${total.toLocaleString("en")} of ${formatCount(all, "image")}` : formatCount(all, "image");
    const words = trouble ? `${capitalize(trouble)}. Trying again.` : shown;
    if (this.count.textContent !== words) this.count.textContent = words;
    this.updateButton.hidden = !changed || !this.filter.changes;
    this.view.layOut();
    this.showEmpty(total === 0);
    if (this.coming != null && total) this.goTo(Math.min(this.coming, total - 1));
    if (total != null) this.coming = null;
    this.view.look();
  }

  /** @param {boolean} none */
  showEmpty(none) {
    if (none === !this.empty.hidden) return;
    this.empty.hidden = !none;
    this.view.element.hidden = none;
    if (!none) return;
    const { pages } = this.session.data;
    const link = (/** @type {string} */ name) => (pages[name] ? [el("a", { href: pages[name][1] }, `Go to ${pages[name][0]}`)] : []);
    const act = this.filter.active
      ? [el("button", { type: "button", onclick: () => this.filter.clear() }, "Clear filter")]
      : [...link("images"), ...link("settings")];
    this.empty.replaceChildren(
      el("p", { class: "empty" }, this.filter.active ? "No image matches this filter." : "No images yet."),
      el("div", { class: "tools onward" }, ...act));
  }

  /** Show what is selected. */
  mark() {
    const { ids, current } = this.selection;
    this.view.mark();
    const about = current?.hidden && !current.labels.length ? ` · ${HIDDEN_WORDS}` : "";
    const only = ids.size === 1 && current && ids.has(current.id) ? current.name + about : null;
    this.panel.show(ids.size, only);
    this.nearDuplicates.show(only ? current : null);
    if (ids.size) this.session.hints.noteUse("select");
    this.session.hints.followSoon();
    this.session.onStatusChanged();
  }

  // What the person does

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  onKey(key, event) {
    if (this.jumpDialog.dialog.open) return this.jumpDialog.key(key);
    if (this.exampleDialog.element.open) return this.exampleDialog.key(key, event);
    if (this.flagDialog.element.open) return this.flagDialog.key(key, event);
    if (event.composedPath()[0] === this.panel.field && key !== "find") return this.panel.key(key, event);
    if (isTyping(event) && key !== "find") return this.filter.key(key, event);
    if (this.move(key, event.shiftKey)) return true;
    const command = {
      " ": () => this.selection.toggle(this.selection.at),
      Enter: () => this.open(this.selection.at),
      Escape: () => this.selection.clear(),
      all: () => this.selection.all(),
      go: () => this.openJump(),
      g: () => this.openJump(),
      r: () => this.startListing(true),
      ",": () => this.openFlag(),
      k: () => this.session.data.may_answer && this.nearDuplicates.keep(),
      ...this.similaritySearch.keys,
      b: () => this.filter.factNames.length && this.showChart(),
      t: () => this.session.data.may_answer && this.nearDuplicates.answer(),
      set: () => this.panel.set(),
      "/": () => this.filter.focus(),
      find: () => this.filter.focus(),
      c: () => this.panel.focus(),
      "+": () => this.tileSize.step(1),
      "=": () => this.tileSize.step(1),
      "-": () => this.tileSize.step(-1),
    }[key];
    if (!command) return false;
    if (!event.repeat) command();
    return true;
  }

  /** A key that moves the cursor. @param {string} key @param {boolean} extend @returns {boolean} */
  move(key, extend) {
    const { listing, selection } = this;
    const { columns, screen } = this.view;
    const most = (listing.total ?? 0) - 1;
    const to = {
      ArrowLeft: selection.at - 1, ArrowRight: selection.at + 1, ArrowUp: selection.at - columns, ArrowDown: selection.at + columns,
      PageUp: selection.at - screen, PageDown: selection.at + screen, Home: 0, End: most,
    }[key];
    if (to === undefined) return false;
    const beyond = key.startsWith("Arrow") && (to < 0 || to > most);
    if (most >= 0 && !beyond) this.goTo(Math.min(most, Math.max(0, to)), extend);
    return true;
  }

  /** The cursor goes there. @param {number} index @param {boolean} [extend] the selection with it */
  goTo(index, extend = false) {
    const { selection, view } = this;
    view.element.classList.add("keyed");
    if (extend) selection.extend(index);
    else selection.at = selection.anchor = index;
    if (!extend) selection.base = new Set(selection.ids);
    view.reveal(index);
    const { activeElement } = this.session.root;
    if (!activeElement?.matches("input, select")) view.element.focus({ preventScroll: true });
    this.mark();
  }

  /** Show or hide the bars of a fact. */
  showChart() {
    this.chartButton.setAttribute("aria-expanded", String(this.chart.toggle()));
  }

  openJump() {
    this.jumpDialog.open(this.selection.at, this.listing.total ?? 0);
  }

  /** @param {number} index @param {"one" | "toggle" | "range"} how */
  onTileClick(index, how) {
    this.view.element.classList.remove("keyed");
    if (how === "range") this.selection.extend(index);
    else this.selection[how](index);
  }

  /** Open an image in Annotate. @param {number} index */
  open(index) {
    const image = this.listing.item(index);
    if (!image) return;
    this.selection.at = index;
    this.saveScroll();
    openInAnnotate(image.id);
  }

  saveScroll() {
    const { current, at } = this.selection;
    if (current && this.coming == null) this.scrollMemory.keep(at ? current.id : null);
  }

  /** Say this of all selected images, as one step. @param {Map<number, number | null>} states class -> state; null: no answer any more */
  set(states) {
    if (!this.session.data.may_answer) return this.session.showMessage("You can only look here. Owners change roles.");
    const { selection, listing } = this;
    const before = new Map(listing.known().filter((image) => selection.ids.has(image.id)).map((image) => [image.id, new Map(image.labels)]));
    const unanswered = (/** @type {number} */ id, /** @type {number} */ class_) => before.has(id) && !before.get(id)?.has(class_);
    const cells = [...selection.ids].flatMap((id) => [...states].filter(([class_, state]) => state != null || !unanswered(id, class_))
      .map(([class_, state]) => /** @type {[number, number, number | null]} */ ([id, class_, state])));
    const words = describeChange(states, selection.ids.size, this.session.names);
    this.view.tiles.first = [...new Set([...states.keys(), ...this.view.tiles.first])];
    this.answer(cells, words);
    this.panel.reset();
  }

  /** Give these answers as one step. @param {[number, number, number | null][]} cells @param {string} words */
  answer(cells, words) {
    const { listing } = this;
    const ids = new Set(cells.map(([id]) => id));
    const before = new Map(listing.known().filter(({ id }) => ids.has(id)).map((image) => [image.id, new Map(image.labels)]));
    const entry = cells.length ? { action: "batch", source: "gallery", cells: cells.map((cell) => [...cell, null]) } : null;
    this.perform(entry, {
      forward: () => this.change(cells),
      back: () => {
        const known = cells.filter(([id]) => before.has(id));
        listing.forget(cells.filter(([id]) => !before.has(id)).map(([id, class_]) => [id, class_]));
        this.change(known.map(([id, class_]) => [id, class_, before.get(id)?.get(class_) ?? null]));
      },
      words,
    });
    this.session.showMessage(`Set: ${words}.`);
  }

  openFlag() {
    const { ids, current } = this.selection;
    if (!this.session.data.may_answer) return this.session.showMessage("You can only look here. Owners change roles.");
    if (!ids.size) return this.session.showMessage("Select images first.");
    if (ids.size > MOST_FLAGS) return this.session.showMessage(`At most ${MOST_FLAGS} images can be flagged at once.`);
    const only = ids.size === 1 && current && ids.has(current.id) ? current : null;
    this.flagDialog.open(only?.name ?? formatCount(ids.size, "image"), only?.flag ?? "");
  }

  /**
   * Flag images with one note as one step.
   * @param {number[]} ids @param {string} note "" removes flags @param {string} words
   * @param {"gallery" | "aside"} source aside: the images leave the work, and the note says why
   */
  flag(ids, note, words, source = "gallery") {
    const batch = crypto.randomUUID();
    const [first, ...others] = ids.map((image) => ({ action: "flag", image, note, source, batch }));
    this.perform(first, {
      // Decisions of one batch are undone together, whichever of them is named.
      forward: () => {
        for (const other of others) this.session.outbox.add(other);
        this.saved();
      },
      back: () => this.saved(),
      words,
    });
    this.session.showMessage(`${words}.`);
  }

  /** @param {Image} image */
  showBeside(image) {
    this.filter.showTwins();
    this.showImage(image.id);
  }

  /** The tiles have another size: the cursor stays in sight. */
  onResize() {
    const { first, last } = this.view.scroller.inSight;
    const row = Math.floor(this.selection.at / this.view.columns);
    this.view.layOut();
    if (row >= first && row <= last) this.view.reveal(this.selection.at);
  }

  /** The tiles show these cells so. @param {[number, number, number | null][]} cells */
  change(cells) {
    this.listing.change(cells);
    this.view.paint();
    this.view.tiles.redraw();
    this.saved();
  }

  showAnswers() {
    this.saved();
  }

  /** What was saved may be refused, or may make images complete: read it again. */
  async readWhenSaved() {
    await this.session.outbox.flush();
    if (!this.session.outbox.waiting.size) this.listing.refresh();
    this.nearDuplicates.renew();
  }

  /** @param {import("../shared/session.js").Step} step @param {"undone" | "redone"} how */
  onForeignStep({ entry }, how) {
    this.announceUndo(how, this.describeDecision(entry));
    this.saved();
  }
}
