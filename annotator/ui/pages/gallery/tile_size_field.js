// @ts-check
/** How large tiles are: the person's choice, kept in this browser for each project. */

import { el } from "../shared/dom.js";
import { readSetting, writeSetting } from "../shared/storage.js";

const TILE_PIXELS = [120, 150, 180, 220, 280, 360]; // CSS pixels, the least width
const DEFAULT_TILE_PIXELS = 150;

export class TileSizeField {
  /** @param {string} project @param {() => void} onChange */
  constructor(project, onChange) {
    this.store = `annotator:${project}:gallery-size`;
    this.onChange = onChange;
    const pixels = readSetting(this.store);
    this.pixels = TILE_PIXELS.includes(pixels) ? pixels : DEFAULT_TILE_PIXELS;
    this.buttons = [["Smaller images", "-", "−", -1], ["Larger images", "+", "+", 1]].map(([words, key, sign, by]) =>
      el("button", {
        type: "button", class: "step", "aria-label": words, title: `${words} (${sign})`, "aria-keyshortcuts": key, "data-by": by,
        onclick: () => this.step(Number(by)),
      }, String(sign)));
    this.element = el("div", { class: "joined sizes", role: "group", "aria-label": "Size of images" }, ...this.buttons);
    this.#tell();
  }

  /** @param {number} by */
  step(by) {
    const to = TILE_PIXELS[TILE_PIXELS.indexOf(this.pixels) + by];
    if (!to) return;
    this.pixels = to;
    writeSetting(this.store, to);
    this.#tell();
    this.onChange();
  }

  #tell() {
    const at = TILE_PIXELS.indexOf(this.pixels);
    for (const button of this.buttons) button.disabled = !TILE_PIXELS[at + Number(button.dataset.by)];
  }
}
