// @ts-check
/** The list on screen: which rows are near the viewport, where their tiles lie, and what they need from the server. */

import { ThumbnailLoader } from "./thumbnail_loader.js";
import { Scroller } from "./scroller.js";
import { GalleryTiles, TILE_GAP_PIXELS, layOutTiles } from "./gallery_tiles.js";

const EXTRA_ROWS = 2; // rows above and below the viewport that exist

export class TileView {
  /**
   * @param {{session: import("../shared/session.js").Session, listing: import("./listing.js").Listing, size: () => number,
   *          marks: () => {ids: Set<number>, at: number}, onMove: () => void}} options
   *   size    the least width of a tile, in CSS pixels
   *   marks   which images are selected, and where the cursor is
   *   onMove  the list was scrolled
   */
  constructor({ session, listing, size, marks, onMove }) {
    this.listing = listing;
    this.size = size;
    this.marks = marks;
    this.onMove = onMove;
    this.columns = 1;
    /** From one tile to the next, in CSS pixels. */
    this.across = 1;
    this.down = 1;
    this.thumbnails = new ThumbnailLoader((path) => session.api.url(path), (id) => this.tiles.onPictureLoaded(id));
    this.scroller = new Scroller({ onMove: (fast) => this.#onMove(fast), onStill: () => this.look(), onResize: () => this.layOut() });
    this.element = this.scroller.element;
    for (const [name, value] of Object.entries({ tabindex: "0", role: "listbox", "aria-multiselectable": "true", "aria-label": "Images" })) {
      this.element.setAttribute(name, value);
    }
    this.tiles = new GalleryTiles(this.scroller.content, { pictures: this.thumbnails, names: () => session.names });
  }

  close() {
    this.scroller.close();
    this.thumbnails.want([]);
  }

  /** Images that are in sight at once. */
  get screen() {
    return Math.max(1, Math.floor(this.scroller.view / this.down)) * this.columns;
  }

  /** Have an image in sight. @param {number} index */
  reveal(index) {
    this.scroller.reveal(Math.floor(index / this.columns));
  }

  layOut() {
    const { scroller, tiles, listing } = this;
    if (!scroller.width || listing.total == null) return;
    const { columns, across, down } = layOutTiles(scroller.width, this.size());
    const { total } = listing;
    const same = columns === this.columns && across === this.across && down === this.down && total === tiles.total;
    if (!same) {
      const top = scroller.inSight.first * this.columns;
      const within = scroller.position - scroller.inSight.first * this.down;
      const other = columns !== this.columns;
      Object.assign(this, { columns, across, down });
      scroller.lay(Math.ceil(total / columns), down);
      if (other) scroller.moveTo(Math.floor(top / columns) * down + Math.min(within, down));
      tiles.resize(across - TILE_GAP_PIXELS, down - TILE_GAP_PIXELS, total);
    }
    this.paint();
  }

  /** The tiles near the viewport, at their places. */
  paint() {
    const { scroller, listing, columns } = this;
    const { first, last } = scroller.inSight;
    const { total } = listing;
    if (total == null) return; // what was listed before stays on screen until then
    const from = Math.max(0, first - EXTRA_ROWS) * columns;
    const to = Math.min(total, (last + EXTRA_ROWS + 1) * columns) - 1;
    this.tiles.show(from, to, {
      item: (index) => listing.item(index),
      place: (index) => ({ left: TILE_GAP_PIXELS + (index % columns) * this.across, top: TILE_GAP_PIXELS + scroller.topOf(Math.floor(index / columns)) }),
    });
    this.mark();
  }

  /** Show what is selected. */
  mark() {
    const { ids, at } = this.marks();
    this.tiles.mark(ids, at);
    this.element.setAttribute("aria-activedescendant", `gallery-${at}`);
  }

  /** Ask for what is in sight: images first, then their pictures, and those of the rows around. */
  look() {
    const { first, last } = this.scroller.inSight;
    const { columns, listing } = this;
    const from = Math.max(0, first - EXTRA_ROWS) * columns;
    const to = (last + EXTRA_ROWS + 1) * columns - 1;
    listing.want(from, to);
    const idsOf = (/** @type {number} */ begin, /** @type {number} */ end) => {
      const ids = [];
      for (let index = begin; index < end; index += 1) {
        const image = listing.item(index);
        if (image) ids.push(image.id);
      }
      return ids;
    };
    this.thumbnails.want([...idsOf(first * columns, (last + 1) * columns), ...idsOf((last + 1) * columns, to + 1), ...idsOf(from, first * columns)]);
  }

  /** Indexes of the tiles that a rectangle meets. @param {import("./pointer_selection.js").Place} from @param {import("./pointer_selection.js").Place} to */
  meets(from, to) {
    const { columns, across, down, listing } = this;
    const column = (/** @type {number} */ left) => Math.min(columns - 1, Math.max(0, Math.floor((left - TILE_GAP_PIXELS) / across)));
    const row = (/** @type {number} */ top) => Math.max(0, Math.floor((top - TILE_GAP_PIXELS) / down));
    const [first, last] = [Math.min(from.left, to.left), Math.max(from.left, to.left)].map(column);
    const [top, bottom] = [Math.min(from.top, to.top), Math.max(from.top, to.top)].map(row);
    const indexes = [];
    for (let at = top; at <= bottom; at += 1) {
      for (let index = at * columns + first; index <= at * columns + last; index += 1) if (index < (listing.total ?? 0)) indexes.push(index);
    }
    return indexes;
  }

  /** What passes fast is asked for one request at a time: the news it brings asks for what is in sight by then. @param {boolean} fast */
  #onMove(fast) {
    this.paint();
    this.onMove();
    if (!fast || !this.listing.busy) this.look();
  }
}
