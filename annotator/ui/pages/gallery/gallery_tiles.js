// @ts-check
/**
 * The tiles near the viewport. A tile that goes out of sight is used again for one that comes: however long the list is,
 * there are a few dozen elements.
 */

import { HIDDEN_WORDS, STATE_WORDS, el, formatCount, formatProbability } from "../shared/dom.js";

export const TILE_GAP_PIXELS = 6; // CSS pixels between two tiles
const PICTURE_RATIO = 0.72; // height of a picture by its width
const CAPTION_PIXELS = 46; // height of name and labels
const CHIP_ROOM_PIXELS = 17; // pixels of a chip besides its letters, and the gap after it
const MORE_ROOM_PIXELS = 30; // pixels of "+12"
const STATE_SIGNS = { 1: "", "-1": "✕ ", 0: "? " };

/** @typedef {import("./listing.js").Image} Image */

/** How many tiles of at least this size stand side by side, and how large they are. @param {number} width @param {number} size */
export function layOutTiles(width, size) {
  const columns = Math.max(1, Math.floor((width - TILE_GAP_PIXELS) / (size + TILE_GAP_PIXELS)));
  const across = (width - TILE_GAP_PIXELS) / columns;
  return { columns, across, down: Math.round((across - TILE_GAP_PIXELS) * PICTURE_RATIO) + CAPTION_PIXELS + TILE_GAP_PIXELS };
}

class GalleryTile {
  constructor() {
    this.picture = el("div", { class: "picture" });
    this.tick = el("span", { class: "tick" }, "✓");
    this.marks = el("span", { class: "marks" });
    this.name = el("div", { class: "name", dir: "auto" });
    this.labels = el("div", { class: "labels" });
    this.box = el("div", { class: "thumb", role: "option" }, this.picture, this.tick, this.marks, this.name, this.labels);
    /** @type {Image | null} */
    this.image = null;
  }

  /** @param {number} index */
  number(index) {
    this.box.dataset.index = String(index);
    this.box.id = `gallery-${index}`;
    this.box.setAttribute("aria-posinset", String(index + 1));
  }
}

export class GalleryTiles {
  /**
   * @param {HTMLElement} content the tiles lie in it
   * @param {{pictures: import("./thumbnail_loader.js").ThumbnailLoader, names: () => Map<number, string>}} options names: of the classes
   */
  constructor(content, { pictures, names }) {
    this.content = content;
    this.pictures = pictures;
    this.names = names;
    /** By index. @type {Map<number, GalleryTile>} */
    this.tiles = new Map();
    /** @type {GalleryTile[]} */
    this.spare = [];
    /** Classes whose labels are shown first, whatever their state, in this order. @type {number[]} */
    this.first = [];
    this.width = 0;
    this.total = 0;
    this.pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    /** Widths of chips by their words. @type {Map<string, number>} */
    this.widths = new Map();
  }

  /**
   * Have exactly these tiles.
   * @param {number} first @param {number} last
   * @param {{item: (index: number) => Image | null, place: (index: number) => {left: number, top: number}}} list
   */
  show(first, last, { item, place }) {
    for (const [index, tile] of this.tiles) {
      if (index >= first && index <= last) continue;
      this.tiles.delete(index);
      this.spare.push(tile);
    }
    for (let index = first; index <= last; index += 1) {
      let tile = this.tiles.get(index);
      if (!tile) {
        tile = this.spare.pop() ?? new GalleryTile();
        tile.number(index);
        this.tiles.set(index, tile);
        if (!tile.box.isConnected) this.content.append(tile.box);
        this.#empty(tile, index);
      }
      const { left, top } = place(index);
      const { style } = tile.box;
      style.left = `${left}px`;
      style.top = `${top}px`;
      const image = item(index);
      if (image !== tile.image) this.#fill(tile, index, image);
    }
    for (const tile of this.spare.splice(0)) tile.box.remove();
  }

  /** Tiles have another size, or there are other names or numbers: all are drawn anew. @param {number} width @param {number} height @param {number} total */
  resize(width, height, total) {
    this.width = width;
    this.total = total;
    this.content.style.setProperty("--thumb-width", `${width}px`);
    this.content.style.setProperty("--thumb-height", `${height}px`);
    this.redraw();
  }

  redraw() {
    for (const [index, tile] of this.tiles) this.#fill(tile, index, tile.image);
  }

  /** Show which are selected, and where the cursor is. @param {Set<number>} ids @param {number} at */
  mark(ids, at) {
    for (const [index, { box, image }] of this.tiles) {
      const selected = String(Boolean(image && ids.has(image.id)));
      if (box.getAttribute("aria-selected") !== selected) box.setAttribute("aria-selected", selected);
      box.classList.toggle("at", index === at);
    }
  }

  /** Its picture has come. @param {number} id */
  onPictureLoaded(id) {
    for (const tile of this.tiles.values()) if (tile.image?.id === id) this.#picture(tile);
  }

  /** @param {GalleryTile} tile @param {number} index */
  #empty(tile, index) {
    tile.image = null;
    tile.box.classList.add("empty-thumb");
    delete tile.box.dataset.image;
    tile.picture.replaceChildren((index + 1).toLocaleString("en"));
    tile.marks.replaceChildren();
    tile.name.replaceChildren();
    tile.labels.replaceChildren();
    tile.box.setAttribute("aria-label", `Image ${index + 1}, loading`);
    tile.box.setAttribute("aria-setsize", String(this.total));
  }

  /** @param {GalleryTile} tile @param {number} index @param {Image | null} image */
  #fill(tile, index, image) {
    if (!image) {
      this.#empty(tile, index);
      return;
    }
    const same = tile.image?.id === image.id;
    tile.image = image;
    tile.box.classList.remove("empty-thumb");
    tile.box.dataset.image = String(image.id);
    tile.box.setAttribute("aria-label", this.#spoken(image));
    tile.box.setAttribute("aria-setsize", String(this.total));
    tile.name.replaceChildren(image.name.split("/").at(-1) ?? "");
    const isHidden = image.hidden && !image.labels.length;
    tile.box.title = isHidden ? `${image.name}\n${HIDDEN_WORDS}` : image.name;
    tile.labels.replaceChildren(...(isHidden ? [el("span", { class: "more" }, "answers hidden")] : this.#chips(image)));
    tile.marks.replaceChildren(...buildMarks(image));
    if (!same || !tile.picture.querySelector("img")) this.#picture(tile);
  }

  /** @param {GalleryTile} tile */
  #picture(tile) {
    if (!tile.image) return;
    const { id } = tile.image;
    const picture = this.pictures.get(id);
    const broken = this.pictures.broken.get(id);
    if (picture) {
      if (picture.parentNode !== tile.picture) tile.picture.replaceChildren(picture);
    } else tile.picture.replaceChildren(broken ? "Cannot be shown" : "");
  }

  /** The labels that there is room for, and how many more. @param {Image} image */
  #chips(image) {
    const names = this.names();
    const ordered = this.#ordered(image);
    let room = this.width - 8;
    const chips = [];
    for (const [place, [id, state]] of ordered.entries()) {
      const words = STATE_SIGNS[state] + (names.get(id) ?? "?");
      const rest = ordered.length - place - 1;
      room -= this.#measureWidth(words) + CHIP_ROOM_PIXELS;
      if (room < (rest ? MORE_ROOM_PIXELS : 0) && place > 0) {
        chips.push(el("span", { class: "more" }, `+${rest + 1}`));
        break;
      }
      chips.push(el("span", { class: "label", dir: "auto", "data-state": STATE_WORDS[state] }, words));
    }
    return chips;
  }

  /** Absent labels are shown of the classes that are looked at only: a complete image has dozens. @param {Image} image */
  #ordered({ labels }) {
    const last = this.first.length;
    const rank = (/** @type {[number, number]} */ [id, state]) => (this.first.includes(id) ? this.first.indexOf(id) : state === 1 ? last : last + 1);
    return labels.filter(([id, state]) => state !== -1 || this.first.includes(id)).sort((a, b) => rank(a) - rank(b));
  }

  /** @param {string} words */
  #measureWidth(words) {
    let width = this.widths.get(words);
    if (width === undefined) {
      if (!this.widths.size) this.pen.font = `12px ${getComputedStyle(this.content).fontFamily}`;
      width = Math.ceil(this.pen.measureText(words).width);
      this.widths.set(words, width);
    }
    return width;
  }

  /** @param {Image} image */
  #spoken(image) {
    const names = this.names();
    const said = this.#ordered(image).map(([id, state]) => `${names.get(id) ?? "a class"} ${STATE_WORDS[state]}`);
    const absent = image.labels.filter(([id, state]) => state === -1 && !this.first.includes(id)).length;
    const marks = [
      image.complete && "complete", image.flag && `${image.aside ? "set aside" : "flag"}: ${image.flag}`,
      image.comments && formatCount(image.comments, "comment"),
      image.probability != null && `probability ${formatProbability(image.probability)}`,
      image.measure,
    ];
    const parts = [said.join(", "), absent && `${absent} absent`, ...marks].filter(Boolean);
    return `${image.name}: ${parts.join("; ") || (image.hidden ? HIDDEN_WORDS : "no label")}`;
  }
}

/** @param {Image} image */
function buildMarks({ complete, flag, aside, comments, probability, measure }) {
  const mark = (/** @type {string} */ kind, /** @type {string} */ sign, /** @type {string} */ title) =>
    el("span", { class: `mark-${kind}`, title }, sign);
  return [
    ...(probability == null ? [] : [mark("chance", formatProbability(probability), "Probability of the class")]),
    ...(measure ? [mark("chance", measure, "What the list is sorted by")] : []),
    ...(comments ? [mark("comments", String(comments), "Comments")] : []),
    ...(flag ? [aside ? mark("aside", "⊘", `Set aside: ${flag}`) : mark("flag", "⚑", flag)] : []),
    ...(complete ? [mark("complete", "✓✓", "Complete: every class is answered")] : []),
  ];
}
