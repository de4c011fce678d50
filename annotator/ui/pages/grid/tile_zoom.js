// @ts-check
/** One tile of the grid, large: to look closely, to turn it, and to go on to its neighbors without leaving. */

import { describeModels, el, formatProbability, kbd, keyButton } from "../shared/dom.js";
import { FIX_KEY, buildFixButton } from "../shared/fix_link.js";
import { HISTORY_KEY } from "../shared/history.js";
import { ImageStage } from "../shared/image_stage.js";
import { UNSURE_KEY } from "./grid_tiles.js";

const STATE_CHOICES = [[1, "Yes"], [-1, "No"], [0, "Unsure"]];

export class TileZoom {
  /**
   * @param {{url: (path: string) => string, onMark: (state: number) => void, onTurn: () => void, onUnsure: () => void,
   *          onMove: (by: number) => void, onClose: () => void, onHistory: () => void, onFix: (id: number) => void}} options
   */
  constructor({ url, onMark, onTurn, onUnsure, onMove, onClose, onHistory, onFix }) {
    this.onHistory = onHistory;
    this.onFix = onFix;
    this.url = url;
    this.onTurn = onTurn;
    this.onUnsure = onUnsure;
    this.onMove = onMove;
    this.stage = new ImageStage();
    this.name = el("span", { class: "name" });
    this.note = el("span", {});
    this.buttons = STATE_CHOICES.map(([state, text]) =>
      el("button", { type: "button", "data-mark": state, "aria-pressed": "false", onclick: () => onMark(Number(state)) }, String(text), ...(state === 0 ? [kbd(UNSURE_KEY)] : [])));
    this.history = keyButton("History", HISTORY_KEY, onHistory);
    this.dialog = el("dialog", { class: "enlarged", tabindex: "-1", "aria-label": "One image of the grid" },
      el("div", { class: "bar" },
        buildStepButton("Previous image", "ArrowLeft", "‹", () => onMove(-1)),
        buildStepButton("Next image", "ArrowRight", "›", () => onMove(1)),
        this.name,
        el("div", { class: "states", role: "group", "aria-label": "Does it show the class" }, ...this.buttons.slice(0, 2), kbd(" "), this.buttons[2]),
        this.history,
        buildFixButton(() => this.onFix(this.item.id)),
        el("button", { type: "button", "aria-keyshortcuts": "Escape", onclick: () => this.dialog.close() }, "Back", kbd("Esc"))),
      this.stage.element);
    this.dialog.addEventListener("close", () => {
      this.item = null;
      this.stage.showText("");
      onClose();
    });
    /** @type {any} */
    this.item = null;
  }

  get isOpen() {
    return this.dialog.open;
  }

  /**
   * @param {import("./grid_tiles.js").Tile} tile @param {HTMLImageElement} small what the tile shows already
   * @param {string} name of the class @param {boolean} hidesHistory nobody is to see earlier answers
   * @param {boolean} guess as in showMark()
   */
  show(tile, small, name, hidesHistory, guess) {
    const picture = /** @type {HTMLImageElement} */ (small.cloneNode());
    picture.alt = tile.name;
    const item = { id: tile.id, name: tile.name, width: tile.width, height: tile.height, picture };
    this.item = item;
    const sure = tile.probability == null ? "" : ` · ${name} ${formatProbability(tile.probability)}`;
    const others = tile.models?.length ? ` · ${describeModels(tile.models)}` : "";
    this.name.replaceChildren(el("bdi", {}, tile.name), `${sure}${others}`, this.note);
    this.stage.show(item);
    this.history.hidden = hidesHistory;
    this.showMark(tile.mark, guess);
    if (!this.dialog.open) {
      this.dialog.showModal();
      this.dialog.focus(); // Space is about the picture, not about whichever button comes first
    }
    const large = new Image();
    large.decoding = "sync";
    large.draggable = false;
    large.alt = tile.name;
    large.dataset.image = String(tile.id);
    large.src = this.url(`/api/image/${tile.id}`);
    large.decode().then(() => {
      if (this.item !== item) return;
      this.stage.frame.querySelector("img[data-image]")?.replaceWith(large);
      item.picture = large;
    }).catch(() => {}); // the small picture stays, which is better than none
  }

  /** @param {number} state what the tile is marked as @param {boolean} guess the model says so, and the person has said nothing */
  showMark(state, guess) {
    for (const button of this.buttons) {
      const pressed = Number(button.dataset.mark) === state;
      button.setAttribute("aria-pressed", String(pressed));
      button.toggleAttribute("data-guess", pressed && guess);
      button.ariaDescription = pressed && guess ? "guessed" : "";
    }
  }

  /**
   * Lay a heat map or boxes over the picture, or take away what lies there.
   * @param {Element | null} picture @param {string} note how far to trust it, "" when there is nothing to say
   */
  showHeatmap(picture, note) {
    this.stage.frame.querySelector(".heatmap, .boxes")?.remove();
    if (picture) this.stage.frame.append(picture);
    this.note.replaceChildren(picture && note ? ` · ${note}` : "");
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    const away = key === "Escape" || (key === "PageDown" && !event.shiftKey && this.stage.view.scale <= 1);
    if (away) this.dialog.close();
    else if (this.stage.key(key, event)) return true;
    else if (key === " " && !event.repeat) this.onTurn();
    else if (key === UNSURE_KEY) event.repeat || this.onUnsure();
    else if (key === HISTORY_KEY) event.repeat || this.onHistory();
    else if (key === FIX_KEY) event.repeat || this.onFix(this.item.id);
    else if (key === "ArrowLeft") this.onMove(-1);
    else if (key === "ArrowRight") this.onMove(1);
    else return key !== "Tab";
    return true;
  }
}

/** @param {string} name @param {string} key @param {string} sign @param {() => void} act */
function buildStepButton(name, key, sign, act) {
  return el("button", { type: "button", class: "step", "aria-label": name, title: name, "aria-keyshortcuts": key, onclick: act }, sign);
}
