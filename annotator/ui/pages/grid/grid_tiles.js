// @ts-check
/**
 * One grid: its tiles and their marks. It is built, and its pictures are decoded, before it is needed. The marks are kept
 * in the grid and not in its elements, so that an old grid can be built again for an undo.
 */

import { STATE_WORDS, el, formatCount, formatProbability, kbd } from "../shared/dom.js";
import { createPicture, loadPicture } from "../shared/pictures.js";

export const UNSURE_KEY = "u"; // as in Review
const EVEN_PROBABILITY = 0.5; // as in queues/event_tiles.py
/** Keys of the first tiles, row by row of the keyboard. Commands use none of them. */
export const TILE_KEYS = [..."1234567890qwertyiopasdfghjklzxcvbnm"];

const STATE_SIGNS = { 1: "✓", "-1": "✕", 0: "?" };
const STATE_ANSWERS = { 1: "yes", "-1": "no", 0: "unsure" };

/**
 * @typedef {{id: number, name: string, width: number, height: number, probability: number | null, state: number | null, by: string | null,
 *            models?: [string, number][], boxes?: import("../shared/boxes.js").Box[], mark?: number, under?: number, touched?: boolean, broken?: string,
 *            others?: [number, number, string][], members?: Tile[]}} Tile  others: the other images of its event that it stands for: id, probability, name; members: the
 *            same as tiles, once they were shown (event_images.js); state, by: what was said before, and who said it; mark is what it
 *            will be decided as; under: the yes or no that it was before it was marked unsure
 * @typedef {{id: string, class: number, run: number | null, share: number | null, start: "yes" | "no", tiles: Tile[],
 *            waiting?: number | null, hidesPredictions?: boolean, began?: "yes" | "no", at?: number, fixed?: number, view?: GridTiles, loaded?: boolean, broken?: string}} Grid
 *   began: how it began before the person turned it; at is where the cursor stands; fixed: an image of it that was fixed meanwhile; hidesPredictions: nobody is to see what the model thinks
 */

export class GridTiles {
  /**
   * @param {Grid} grid
   * @param {{url: (path: string) => string, name: string, annotator: string, onPress: (index: number) => void,
   *          onEnlarge: (index: number) => void, onBurst?: (index: number) => void}} options
   *   name: of the class; annotator: who looks at it; onBurst: the single images of an event are to be shown
   */
  constructor(grid, { url, name, annotator, onPress, onEnlarge, onBurst }) {
    this.grid = grid;
    this.url = url;
    this.name = name;
    this.annotator = annotator;
    this.gone = false;
    this.complete = false;
    this.on = false;
    grid.at ??= 0;
    grid.began ??= grid.start;
    for (const tile of grid.tiles) tile.mark ??= tile.state ?? (grid.start === "yes" ? 1 : -1);
    /** @type {{box: HTMLElement, button: HTMLButtonElement, picture: HTMLImageElement, badge: HTMLElement}[]} */
    this.parts = grid.tiles.map((tile, index) => this.#build(tile, index, onPress, onEnlarge, onBurst));
    this.element = el("div", { role: "group", "aria-label": `Images to check for ${name}`, "data-grid": grid.id, "data-class": grid.class },
      ...this.parts.map((part) => part.box));
    this.#start();
    grid.tiles.forEach((_, index) => this.#draw(index));
    this.appear(false);
    this.loaded = Promise.all(grid.tiles.map((tile, index) => this.#load(tile, index))).then(() => {
      this.complete = true;
    });
  }

  /**
   * On screen, or hidden and out of reach until its turn. Not by `inert`, which would repaint all of it each time.
   * @param {boolean} on
   */
  appear(on) {
    this.on = on;
    this.element.className = on ? "tiles" : "ahead";
    this.element.setAttribute("aria-hidden", String(!on));
    this.moveTo(this.grid.at);
    this.parts.forEach(({ box }, index) => {
      if (on) box.dataset.image = String(this.grid.tiles[index].id);
      else delete box.dataset.image;
    });
  }

  /** Yes becomes no, and no yes; what is unsure becomes the opposite of what it was before. @param {number} index */
  press(index) {
    this.mark(index, -this.#answer(index));
  }

  /** Unsure, or no longer: a press too many is taken back by the same press. @param {number} index */
  toggleUnsure(index) {
    this.mark(index, this.grid.tiles[index].mark === 0 ? this.#answer(index) : 0);
  }

  /** The yes or no that a tile is marked as, or was before it was unsure. @param {number} index */
  #answer(index) {
    const { mark, under } = this.grid.tiles[index];
    return mark || under || (this.grid.start === "yes" ? 1 : -1);
  }

  /** @param {number} index @param {number} state */
  mark(index, state) {
    const tile = this.grid.tiles[index];
    if (tile.broken) return;
    tile.under = tile.mark || tile.under;
    tile.mark = state;
    tile.touched = state !== (tile.state ?? (this.grid.start === "yes" ? 1 : -1));
    this.#draw(index);
  }

  /** Begin with the opposite mark; tiles that the person has marked stay. */
  turn() {
    this.grid.start = this.grid.start === "yes" ? "no" : "yes";
    this.#start();
    this.grid.tiles.forEach((tile, index) => {
      if (!tile.touched && tile.state == null) tile.mark = this.grid.start === "yes" ? 1 : -1;
      this.#draw(index);
    });
  }

  /** The cursor goes to this tile. @param {number} index */
  moveTo(index) {
    const { grid } = this;
    this.parts[grid.at]?.box.classList.remove("at");
    this.parts[grid.at]?.button.setAttribute("tabindex", "-1");
    grid.at = Math.min(Math.max(index, 0), grid.tiles.length - 1);
    this.parts[grid.at]?.box.classList.add("at");
    this.parts[grid.at]?.button.setAttribute("tabindex", this.on ? "0" : "-1");
  }

  focus() {
    this.parts[this.grid.at]?.button.focus();
  }

  /**
   * What Enter would save: a row [image, class, state, probability] for each tile that says something new, which that one
   * more person sees it so is as well. Of what was answered before the model has learned the answer: no test of it.
   */
  cells() {
    const members = this.grid.tiles.flatMap((tile) => (tile.members ?? []).filter((member) => !member.broken && isMemberAnswered(tile, member)));
    return [...this.grid.tiles, ...members]
      .filter((tile) => !tile.broken && (tile.mark !== tile.state || tile.by !== this.annotator))
      .map((tile) => [tile.id, this.grid.class, tile.mark, tile.state == null ? tile.probability : null]);
  }

  /**
   * What Enter would save of images that were not shown: those that a tile stands for are as the tile is, where the
   * person says of it what the model says of them all. A tile that cannot be shown says nothing of them.
   * @returns {import("../shared/event_strip.js").Copy[]}
   */
  copies() {
    return this.grid.tiles
      .filter((tile) => !tile.broken && !tile.members && speaksForOthers(tile))
      .flatMap((tile) => (tile.others ?? []).map(([id]) => /** @type {import("../shared/event_strip.js").Copy} */ ([id, this.grid.class, tile.mark, tile.id])));
  }

  /** How many images are answered besides those of the tiles. */
  get moreCount() {
    const { tiles } = this.grid;
    return tiles.reduce((sum, tile) => sum + (tile.members ?? []).filter((member) => isMemberAnswered(tile, member)).length, this.copies().length);
  }

  /** Whether a tile is marked as the model has it, and the person has said nothing of it. @param {number} index */
  isGuess(index) {
    const { tiles, start, began, hidesPredictions } = this.grid;
    const { touched, state, probability, broken } = tiles[index];
    return !broken && !touched && state == null && probability != null && !hidesPredictions && start === began;
  }

  /** How many tiles are guesses. */
  get guessCount() {
    return this.grid.tiles.filter((_, index) => this.isGuess(index)).length;
  }

  /** How many tiles are marked with a state. @param {number} state */
  count(state) {
    return this.grid.tiles.filter((tile) => !tile.broken && tile.mark === state).length;
  }

  /** How many of them cannot be shown, and why the first one; "" where all can. */
  get notShown() {
    const { tiles } = this.grid;
    const broken = tiles.filter((tile) => tile.broken);
    if (!broken.length) return "";
    const reason = broken[0].broken.replace(/[.\s]*$/, "");
    return `${broken.length} of ${formatCount(tiles.length, "image")} cannot be shown and will not be saved: ${reason}.`;
  }

  /** Lay a heat map or boxes over a tile, or take away what lies there. @param {number} index @param {Element | null} picture */
  showHeatmap(index, picture) {
    const button = this.parts[index]?.button;
    if (!button || (picture && picture.parentNode === button)) return;
    button.querySelector(".heatmap, .boxes")?.remove();
    if (picture) button.querySelector("img")?.after(picture);
  }

  close() {
    this.gone = true;
    for (const { picture } of this.parts) if (!picture.complete) picture.src = "";
  }

  #start() {
    this.element.dataset.start = this.grid.start;
  }

  /**
   * @param {Tile} tile @param {number} index @param {(index: number) => void} onPress
   * @param {(index: number) => void} onEnlarge @param {((index: number) => void) | undefined} onBurst
   */
  #build(tile, index, onPress, onEnlarge, onBurst) {
    const key = TILE_KEYS[index];
    const picture = createPicture(tile.id);
    const badge = el("span", { class: "badge", "aria-hidden": "true" });
    const percent = tile.probability == null ? "" : formatProbability(tile.probability);
    const button = el(
      "button",
      {
        type: "button", class: "mark", "data-enter": "page", "aria-keyshortcuts": key, tabindex: "-1",
        onclick: (/** @type {MouseEvent} */ event) => event.detail === 0 && onPress(index),
      },
      picture,
      ...(key ? [kbd(key)] : []),
      badge,
      ...(percent ? [el("span", { class: "percent", "aria-hidden": "true" }, percent)] : []),
    );
    const larger = el("button", {
      type: "button", class: "enlarge", tabindex: "-1", title: "Enlarge (PageUp)", "aria-label": `Enlarge ${tile.name}`,
      onclick: () => onEnlarge(index),
    }, el("span", { "aria-hidden": "true" }, "⤢"));
    const box = el("div", { class: "tile", "data-index": index }, button, larger);
    if (tile.others?.length && onBurst) box.append(buildEventButton(tile, () => onBurst(index)));
    return { box, button, picture, badge };
  }

  /** @param {number} index */
  #draw(index) {
    const tile = this.grid.tiles[index];
    const { box, button, badge } = this.parts[index];
    const guess = this.isGuess(index);
    const burst = tile.others?.length && box.querySelector(".burst span");
    if (burst) burst.textContent = formatEventSize(tile); // also where only its images were looked at
    if (!tile.broken && box.dataset.state === STATE_WORDS[tile.mark] && box.hasAttribute("data-guess") === guess) return;
    box.toggleAttribute("data-guess", guess);
    box.dataset.state = tile.broken ? "broken" : STATE_WORDS[tile.mark];
    badge.replaceChildren(tile.broken ? "–" : STATE_SIGNS[tile.mark]);
    const spoken = tile.broken ? `cannot be shown: ${tile.broken}` : STATE_ANSWERS[tile.mark] + (guess ? ", guessed" : "");
    const sure = tile.probability == null ? "" : `, ${formatProbability(tile.probability)}`;
    button.setAttribute("aria-label", `${tile.name}${sure}: ${spoken}`);
    button.setAttribute("aria-pressed", { 1: "true", "-1": "false", 0: "mixed" }[tile.mark]);
  }

  /** One that no server can make is left out of the decision. @param {Tile} tile @param {number} index */
  async #load(tile, index) {
    const { picture, button } = this.parts[index];
    const reason = await loadPicture(picture, this.url(`/api/thumb/${tile.id}`), () => this.gone);
    if (!reason || this.gone) return;
    tile.broken = reason;
    this.#draw(index);
    button.append(el("span", { class: "broken", title: reason }, "Cannot be shown"));
  }
}

/** Whether an image of an event that was shown is answered: it was marked, or its tile is yes or no. @param {Tile} tile @param {Tile} member */
function isMemberAnswered(tile, member) {
  if (!member.touched) member.mark = tile.mark;
  return Boolean(member.touched || tile.mark);
}

/** Whether the answer to a tile is one to all images of its event: what the model says of them. @param {Tile} tile */
function speaksForOthers({ mark, probability }) {
  return Boolean(mark) && mark === ((probability ?? 0) >= EVEN_PROBABILITY ? 1 : -1);
}

/** How many images of the event the answer to a tile is about. @param {Tile} tile */
function formatEventSize(tile) {
  const all = 1 + (tile.others?.length ?? 0);
  return tile.members || !tile.mark || speaksForOthers(tile) ? `×${all}` : `1 of ${all}`;
}

/** How many images a tile stands for; it shows them. @param {Tile} tile @param {() => void} act */
function buildEventButton({ name, others, probability }, act) {
  const chances = (others ?? []).map(([, one]) => one);
  const about = `Event of ${formatCount(1 + chances.length, "image")}, ${formatProbability(Math.min(...chances))} to ${formatProbability(Math.max(probability ?? 0, ...chances))}`;
  return el("button", { type: "button", class: "burst", tabindex: "-1", title: `${about}: show them (,)`, "aria-label": `${about}: show them, ${name}`, onclick: act },
    el("span", {}, `×${1 + chances.length}`));
}

/** What a grid asks about: its tiles, and the images that they stand for. @param {Grid} grid @returns {[number, number][]} */
export function listCells(grid) {
  return grid.tiles.flatMap(({ id, others = [] }) => [id, ...others.map(([other]) => other)]).map((id) => [id, grid.class]);
}

/** Its elements go; what was decided stays. @param {any} item a grid, or what one is part of */
export function discardElements(item) {
  const grid = item.grid ?? item;
  grid.view?.close();
  grid.view = item.loaded = item.coming = undefined;
}

/** Mark the tiles as they were decided. @param {import("./grid_tiles.js").Grid} grid @param {any[][]} cells */
export function restoreMarks(grid, cells) {
  const marks = new Map(cells.map(([image, , state]) => [image, state]));
  grid.tiles.forEach((tile, index) => {
    const mark = marks.get(tile.id);
    if (mark == null || mark === tile.mark) return;
    tile.mark = mark;
    grid.view?.mark(index, mark);
  });
}

/** @param {number} size */
export function buildSkeleton(size) {
  return el("div", { class: "tiles skeleton", "aria-hidden": "true" },
    ...Array.from({ length: size }, () => el("div", { class: "tile" })));
}
