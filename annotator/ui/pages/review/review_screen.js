// @ts-check
/**
 * What the Review page shows: the picture with its heat maps, the list of suggestions beside it, and what is known.
 * Picture and list change in one frame, because keys apply to them; heat maps and everything else follow.
 */

import { SuggestionChips, formatAnswer } from "./suggestion_chips.js";
import { formatCommentCount } from "../shared/history.js";
import { afterPaint, el, keyButton, setText, showCaption } from "../shared/dom.js";
import { buildFixButton } from "../shared/fix_link.js";
import { HeatmapOverlay, isHiddenChip } from "./heatmap_overlay.js";
import { HeatmapLoader } from "../shared/heatmaps.js";
import { ImageLabels } from "./image_labels.js";
import { AcceptThreshold } from "./accept_threshold.js";
import { buildOnwardLinks, describeWait } from "../shared/placeholder.js";
import { ImageStage } from "../shared/image_stage.js";
import { EventStrip } from "../shared/event_strip.js";

const IMAGES_AHEAD = 4; // images whose lists are built and whose heat maps are fetched before they are needed

/**
 * @typedef {{answer: (state: number, at?: number) => void, acceptAll: () => void, done: () => void, pass: () => void,
 *            earlier: () => void, later: () => void, add: () => void, fix: () => void, whole: () => void}} Actions
 */

export class ReviewScreen {
  /**
   * @param {import("../shared/session.js").Session} session @param {import("./review_filter.js").ReviewFilter} filter
   * @param {Actions} actions
   */
  constructor(session, filter, actions) {
    this.session = session;
    this.filter = filter;
    this.actions = actions;
    /** @type {WeakMap<object, SuggestionChips>} */
    this.lists = new WeakMap();
    /** @type {SuggestionChips | null} the list on screen */
    this.chips = null;
    /** @type {any} what is on screen */
    this.item = null;
    this.heatmaps = new HeatmapLoader(session.api, (spot) => this.heat.onHeatmap(spot), (id) => this.className(id));
    this.heat = new HeatmapOverlay(this.heatmaps, (problem) => this.#showHeatNote(problem));
    this.stage = new ImageStage({ onSwipe: (way) => actions.answer(way === "right" ? 1 : -1) });
    this.strip = new EventStrip(session, { stage: this.stage, onWhole: actions.whole });
    const { project } = session.data;
    this.threshold = new AcceptThreshold({ project, onMove: () => this.#drawThreshold(), onAccept: actions.acceptAll });
    this.imageLabels = new ImageLabels((id) => this.className(id));
    this.rest = afterPaint(() => this.#showRest());
    this.scroll = afterPaint(() => this.chips?.scrollToSelected());
    this.#build();
  }

  /** Which of the suggestions on screen is selected; -1 for none. */
  get at() {
    return this.chips?.at ?? -1;
  }

  /** The current item, or words where there is none. */
  show() {
    /** @type {any} */
    const item = this.session.items.current;
    const held = this.place.contains(this.session.root.activeElement);
    this.chips = item ? this.list(item) : null;
    const selected = item?.suggestions[this.at];
    const at = !item || (selected && selected.given == null) ? this.at : Math.max(0, findFirstOpen(item));
    const chip = item?.suggestions[at];
    if (item?.loaded) {
      this.heat.show(item, chip);
      this.stage.show(item, [this.heat.layer]);
    } else {
      this.heat.show(null, null);
      const { items } = this.session;
      const clear = this.filter.active && items.news.progress ? [this.#buildClearButton()] : [];
      this.stage.showText(describeWait(items), ...(item ? [] : [buildOnwardLinks(this.session), ...clear]));
    }
    this.place.replaceChildren(...(this.chips ? [this.chips.element] : []));
    if (chip) this.#point(at, chip);
    if (held) this.chips?.rows[this.at]?.pick.focus({ preventScroll: true });
    if (item !== this.item) this.session.onPictureShown(); // not again when its picture comes: words about it stay
    this.item = item;
    this.strip.show(item?.loaded ? item : null);
    this.rest();
  }

  /** @param {number} at @param {boolean} [fades] whether its heat map fades in */
  select(at, fades = true) {
    /** @type {any} */
    const item = this.session.items.current;
    const chip = item?.suggestions[at];
    if (!chip || !this.chips) return;
    this.#point(at, chip);
    this.heat.look(item.loaded ? chip : null, fades);
  }

  /** Select a suggestion: keys apply to it. @param {number} at @param {any} chip */
  #point(at, chip) {
    this.chips.select(at);
    const name = this.className(chip.class_id);
    this.stage.words = { right: formatAnswer(chip, 1, name), left: formatAnswer(chip, -1, name) };
    for (const { state, words } of this.answers) setText(words, formatAnswer(chip, state));
    this.scroll();
  }

  /** Show what the model thinks of an image on which people disagree. */
  ask() {
    /** @type {any} */
    const item = this.session.items.current;
    if (!item?.suggestions.some((chip) => isHiddenChip(item, chip))) return;
    item.asked = true;
    this.lists.delete(item);
    const { at } = this;
    this.show();
    this.select(at);
  }

  /** Show what was answered. @param {any} item @param {number[]} places */
  mark(item, places) {
    const list = this.lists.get(item);
    if (list) for (const at of places) list.mark(at);
  }

  /** The list of an image's suggestions, built once. @param {any} item */
  list(item) {
    let list = this.lists.get(item);
    if (!list) {
      const shown = () => item === this.session.items.current;
      list = new SuggestionChips(item, {
        name: (id) => this.className(id),
        onSelect: (at) => shown() && this.select(at),
        onAnswer: (at, state) => shown() && this.actions.answer(state, at),
      });
      this.lists.set(item, list);
    }
    list.drawThreshold(this.threshold.at);
    return list;
  }

  /** Classes have other names, or there are more. */
  rename() {
    this.lists = new WeakMap();
    this.show();
  }

  close() {
    this.strip.close();
    this.heatmaps.close();
  }

  /** @param {number} id */
  className(id) {
    return this.session.names.get(id) ?? "?";
  }

  #build() {
    const { answer, done, pass, earlier, later, add, fix } = this.actions;
    this.name = el("span", {});
    this.heatNote = el("span", { class: "note" });
    this.place = el("div", { class: "list" });
    const buttons = [[1, "Y", "yes"], [-1, "N", "no"], [0, "U", ""]].map(([state, key, kind]) => ({
      state: Number(state),
      button: keyButton(formatAnswer(null, Number(state)), String(key), () => answer(Number(state)), { class: kind }),
    }));
    this.answers = buttons.map(({ state, button }) => ({ state, words: button.firstElementChild }));
    const answers = el("div", { class: "answers first", role: "group", "aria-label": "Answer" },
      ...buttons.map(({ button }) => button));
    const goOn = el("div", { class: "answers", role: "group", "aria-label": "Go on" },
      keyButton("Nothing else here", "Enter", done), keyButton("Skip", " ", pass));
    const fixing = buildFixButton(fix);
    const adding = keyButton("Add a class", "/", add);
    /** What can be done with an image only. */
    this.onImage = [...buttons.map(({ button }) => button), ...goOn.querySelectorAll("button"), adding, fixing];
    const trail = el("div", { class: "tools", role: "group", "aria-label": "Images" },
      keyButton("Previous", "ArrowLeft", earlier), keyButton("Next", "ArrowRight", later));
    const { statusLine, help, hints, words, toolbar, element } = this.session;
    this.askButton = keyButton("What does the model think?", "M", () => this.ask(), { hidden: true });
    const more = el("div", { class: "tools", role: "group", "aria-label": "This image" }, this.askButton,
      adding, fixing, this.session.historyButton);
    const left = el("div", { class: "left" }, this.stage.element, this.strip.element,
      el("div", { class: "under" }, el("div", { class: "caption" }, this.name, this.heatNote), words,
        more, this.heat.control));
    const side = el("div", { class: "side" },
      el("div", { class: "known" }, el("span", { class: "quiet" }, "Known"), this.imageLabels.element),
      this.place, answers, this.threshold.element, goOn,
      el("div", { class: "session" }, trail, toolbar));
    const work = el("div", { class: "work" }, left, side);
    element.replaceChildren(this.filter.element, work, statusLine.element, hints.element, help.dialog);
  }

  /** Everything that keys do not apply to, after the picture's frame. */
  #showRest() {
    /** @type {any} */
    const item = this.session.items.current;
    showCaption(this.name, item?.name, [formatCommentCount(item)]);
    this.imageLabels.show(item, this.session.data.annotator);
    this.threshold.element.hidden = this.filter.relabels;
    for (const button of this.onImage) if (button.disabled !== !item) button.disabled = !item;
    this.askButton.hidden = !item?.suggestions.some((chip) => isHiddenChip(item, chip));
    this.threshold.offer(item ? listOpenAbove(item, this.threshold.at).length : 0);
    this.#prepare();
  }

  /** Build the lists of the images that come next, and fetch their heat maps. */
  #prepare() {
    const { current, queue } = this.session.items;
    const next = queue.slice(0, IMAGES_AHEAD);
    for (const item of next) this.list(item);
    const chips = [current, ...next].flatMap((item) => item?.suggestions ?? []);
    this.heatmaps.want(chips.filter((chip) => chip.run_id != null));
  }

  #buildClearButton() {
    return el("button", { type: "button", class: "main", onclick: () => this.filter.clear() }, "Clear filter");
  }

  #drawThreshold() {
    this.chips?.drawThreshold(this.threshold.at);
    this.rest();
  }

  /** @param {string} problem */
  #showHeatNote(problem) {
    setText(this.heatNote, problem && ` · ${problem}`);
  }
}

/**
 * The places of open suggestions at or above the line, without those of answered cells.
 * @param {any} item @param {number} line 0..1 @returns {number[]}
 */
export function listOpenAbove(item, line) {
  const above = (/** @type {any} */ chip) => chip.given == null && chip.known == null && chip.probability >= line;
  return item.suggestions.flatMap((chip, at) => (above(chip) ? [at] : []));
}

/** @param {any} item */
export function findFirstOpen(item) {
  return item.suggestions.findIndex((chip) => chip.given == null);
}
