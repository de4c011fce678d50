// @ts-check
/** The twins of the image that is selected: which they are, and what can be said of them in one step. */

import { findMissingAnswers } from "../shared/shared_answers.js";
import { el, formatCount, keyButton } from "../shared/dom.js";

const MAX_NAMED_IMAGES = 3; // twins whose names are shown

/**
 * @typedef {{id: number, name: string, flag: string | null, labels: number[]}} Twin  labels: classes with an answer
 * @typedef {{twins: Twin[], answers: [number, number][], more: number}} Told
 *   answers   what this person answered on the image: [class, state]
 * @typedef {import("./listing.js").Image} Image
 * @typedef {import("../shared/shared_answers.js").Cell} Cell
 */

export class NearDuplicates {
  /**
   * @param {{ask: (image: number) => Promise<Told | null>, isBeside: () => boolean,
   *          onBeside: (image: Image) => void, say: (text: string) => void,
   *          onKeep: (image: Image, twins: Twin[]) => void, onAnswer: (image: Image, cells: Cell[]) => void,
   *          mayAnswer: boolean}} options
   *   isBeside   the list shows twins side by side
   *   onBeside   the twins are to be shown side by side
   *   onKeep     the image is kept, these twins are set aside
   *   onAnswer   the twins get these answers
   */
  constructor({ ask, isBeside, onBeside, onKeep, onAnswer, say, mayAnswer }) {
    this.ask = ask;
    this.isBeside = isBeside;
    this.onKeep = onKeep;
    this.onAnswer = onAnswer;
    this.say = say;
    /** @type {Image | null} */
    this.image = null;
    /** @type {Told | null} */
    this.told = null;
    this.words = el("p", { class: "about" });
    this.besideButton = el("button", { type: "button", onclick: () => this.image && onBeside(this.image) }, "Side by side");
    this.keepButton = keyButton("Keep this one", "k", () => this.keep(), { title: "Set the others aside, as its twins" });
    this.answerButton = keyButton("Answer all", "t", () => this.answer(), { title: "Give your answers to the twins, where they have none" });
    this.element = el("div", { class: "twins", role: "group", "aria-label": "Twins", hidden: true }, this.words,
      el("div", { class: "tools" }, this.besideButton, ...(mayAnswer ? [this.keepButton, this.answerButton] : [])));
  }

  /** @param {Image | null} image the only one that is selected */
  async show(image) {
    if (image?.id === this.image?.id) return;
    this.image = image;
    this.told = null;
    this.element.hidden = true;
    await this.renew();
  }

  /** Ask again: answers were given or flags were set. */
  async renew() {
    const { image } = this;
    if (!image) return;
    const told = await this.ask(image.id);
    if (!told || image !== this.image) return;
    this.told = told;
    const { twins, more } = told;
    const names = twins.slice(0, MAX_NAMED_IMAGES).map(({ name }) => name.split("/").at(-1)).join(", ");
    const further = twins.length - MAX_NAMED_IMAGES + more;
    this.words.textContent = `${formatCount(twins.length + more, "twin")}: ${names}${further > 0 ? ` and ${further.toLocaleString("en")} more` : ""}`;
    this.words.title = twins.map(({ name }) => name).join("\n");
    this.besideButton.hidden = this.isBeside();
    this.element.hidden = !twins.length;
  }

  /** The image is kept, the others are set aside. */
  keep() {
    const [image, told] = this.#getShown();
    if (!image) return;
    const twins = told.twins.filter(({ flag }) => !flag);
    if (twins.length) this.onKeep(image, twins);
    else this.say("Its twins are flagged already.");
  }

  /** The twins get this person's answers where they have none. */
  answer() {
    const [image, told] = this.#getShown();
    if (!image) return;
    const cells = findMissingAnswers(told.twins, told.answers);
    if (cells.length) this.onAnswer(image, cells);
    else this.say(told.answers.length ? "Its twins have these answers already." : `You have answered nothing on ${image.name} yet.`);
  }

  /** @returns {[Image, Told] | [null, null]} */
  #getShown() {
    if (this.image && this.told?.twins.length) return [this.image, this.told];
    this.say("Select one image that has twins.");
    return [null, null];
  }
}
