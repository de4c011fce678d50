// @ts-check
/**
 * What a model saw on the image on screen: its heat maps, and boxes of models from elsewhere. A suggestion that has boxes
 * shows them first, and its heat map when asked. All heat maps that are loaded lie over the picture already,
 * transparent: showing another one only changes an opacity, so it is visible in the next frame.
 */

import { afterPaint, el, kbd } from "../shared/dom.js";
import { describeBoxes, describePlace, drawBoxes } from "../shared/boxes.js";
import { readSetting, writeSetting } from "../shared/storage.js";

const STORAGE_KEY = "annotator:heat"; // strength and whether shown at all: the same in every project
const DEFAULT_STRENGTH_PERCENT = 60; // percent
const STRENGTH_STEP_PERCENT = 10;
const FIRST_FRAME_SHARE = 0.4; // of the strength, in the first frame
const FADE_MILLISECONDS = 90;

/** Whether the model's opinion is hidden: people disagree, and nobody has asked for it yet. @param {any} item @param {any} chip */
export function isHiddenChip(item, chip) {
  return Boolean(chip?.said?.length) && !item?.asked;
}

export class HeatmapOverlay {
  /**
   * @param {import("../shared/heatmaps.js").HeatmapLoader} heatmaps
   * @param {(words: string) => void} onProblem why the heat map that should be seen is not, or how far to trust it
   */
  constructor(heatmaps, onProblem) {
    this.heatmaps = heatmaps;
    this.onProblem = onProblem;
    this.strength = DEFAULT_STRENGTH_PERCENT;
    this.on = true;
    this.prefersBoxes = true; // of what has both; not kept: boxes are shown first
    this.#recall();
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {any} */
    this.item = null;
    /** @type {any} */
    this.chip = null;
    /** @type {HTMLImageElement | null} */
    this.seen = null;
    /** @type {SVGSVGElement | null} */
    this.boxes = null;
    /** @type {any[] | null} the boxes in it */
    this.drawn = null;
    /** Of the one that is seen. @type {Animation | null} */
    this.fade = null;
    this.layer = el("div", { class: "heat" });
    this.lay = afterPaint(() => this.#lay());
    this.slider = el("input", {
      type: "range", min: "0", max: "100", step: "5", "aria-label": "Strength of the heat map",
      "aria-keyshortcuts": "- +",
      oninput: () => this.#set(Number(this.slider.value), true),
    });
    this.output = el("output", {});
    this.toggleButton = el("button", {
      type: "button", class: "heat-switch", "aria-keyshortcuts": "H", onclick: () => this.toggle(),
    }, this.shown = el("span", {}, "Heat map"), kbd("H"));
    this.control = el("div", { class: "row heat-control" }, this.toggleButton, this.slider, this.output);
    this.#tell();
  }

  /**
   * The layer is to lie over another image: nothing of the one before is seen, and the heat maps of this one come a
   * frame after its picture.
   * @param {any} item null: none @param {any} chip of which suggestion one will be seen
   */
  show(item, chip) {
    this.item = item;
    this.chip = chip;
    this.#hide();
    this.#draw(null);
    this.layer.replaceChildren();
    this.onProblem("");
    if (item) this.lay();
  }

  /**
   * Let the heat map of this suggestion be seen, and no other.
   * @param {any} chip
   * @param {boolean} [fades] in; not after an answer: as long as a fade lasts, a key waits for its frames
   */
  look(chip, fades = true) {
    this.chip = chip;
    const visible = this.on && !isHiddenChip(this.item, chip);
    const boxes = visible && this.prefersBoxes && chip?.boxes?.length ? chip.boxes : null;
    this.#draw(boxes);
    const map = chip?.run_id != null && visible && !boxes ? this.heatmaps.get(chip) : null;
    const picture = map?.picture ?? null;
    if (picture !== this.seen) this.#hide();
    if (picture && picture !== this.seen) {
      if (picture.parentNode !== this.layer) this.layer.append(picture);
      const full = this.strength / 100;
      picture.style.opacity = String(full);
      if (fades && !this.calm.matches) {
        this.fade = picture.animate([{ opacity: full * FIRST_FRAME_SHARE }, { opacity: full }], FADE_MILLISECONDS);
      }
    }
    this.seen = picture;
    if (boxes) this.onProblem(describeBoxes(boxes));
    else this.onProblem(!map ? "" : picture ? map.note : map.problem || "drawing the heat map...");
  }

  /** A heat map has come, or it is known why it will not. @param {import("../shared/heatmaps.js").Spot} spot */
  onHeatmap(spot) {
    if (this.item?.id !== spot.image_id) return;
    const picture = this.heatmaps.known(spot)?.picture;
    if (picture && picture.parentNode !== this.layer) {
      picture.style.opacity = "0";
      this.layer.append(picture);
    }
    if (this.chip?.class_id === spot.class_id) this.look(this.chip);
  }

  #lay() {
    const pictures = (this.item?.suggestions ?? []).map((chip) => this.heatmaps.known(chip)?.picture);
    const more = pictures.filter((picture) => picture && picture !== this.seen);
    for (const picture of more) picture.style.opacity = "0";
    this.layer.append(...more);
    if (this.chip) this.look(this.chip, false);
  }

  /** Heat map on or off; of a suggestion with boxes: boxes, heat map, neither. */
  toggle() {
    const toHeat = this.on && this.boxes && this.chip?.run_id != null;
    this.prefersBoxes = !toHeat;
    this.#set(this.strength || DEFAULT_STRENGTH_PERCENT, toHeat ? true : !this.on);
    this.look(this.chip);
  }

  /** @param {1 | -1} way */
  step(way) {
    this.#set(Math.min(100, Math.max(0, this.strength + way * STRENGTH_STEP_PERCENT)), true);
    this.look(this.chip);
  }

  /** Draw these boxes, and no others. @param {any[] | null} boxes */
  #draw(boxes) {
    if (boxes === this.drawn) return;
    this.drawn = boxes;
    this.boxes?.remove();
    this.boxes = boxes && drawBoxes(boxes, this.item, `${describeBoxes(boxes)}: ${boxes.map(describePlace).join("; ")}`);
    if (this.boxes) this.layer.append(this.boxes);
    this.shown.replaceChildren(boxes ? "Boxes" : "Heat map");
  }

  #hide() {
    this.fade?.cancel(); // or it would stay visible until its end
    this.fade = null;
    if (this.seen) this.seen.style.opacity = "0";
    this.seen = null;
  }

  /** @param {number} strength @param {boolean} on */
  #set(strength, on) {
    const shown = this.on;
    Object.assign(this, { strength, on });
    if (this.seen) this.seen.style.opacity = String(strength / 100);
    this.#tell();
    if (on && !shown) this.look(this.chip);
    writeSetting(STORAGE_KEY, { strength, on });
  }

  #tell() {
    this.slider.value = String(this.strength);
    this.output.replaceChildren(this.on ? `${this.strength} %` : "off");
    this.toggleButton.setAttribute("aria-pressed", String(this.on));
  }

  #recall() {
    const { strength, on } = readSetting(STORAGE_KEY) ?? {};
    if (strength >= 0 && strength <= 100) this.strength = strength;
    if (on === false) this.on = false;
  }
}
