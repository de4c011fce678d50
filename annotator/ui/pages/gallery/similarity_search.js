// @ts-check
/** What brings images like an example to the front: the selected ones, words, a picture; and a varied grid of those. */

import { keyButton } from "../shared/dom.js";

const MOST_EXAMPLES = 16; // as in snapshot/similarity/image_similarity.py

export class SimilaritySearch {
  /**
   * @param {{session: import("../shared/session.js").Session, selection: import("./selection.js").Selection,
   *          filter: import("./filter_bar.js").FilterBar, example: import("./example_dialog.js").ExampleDialog, onLeave: () => void}} options
   *   onLeave: the page is left for a grid
   */
  constructor({ session, selection, filter, example, onLeave }) {
    this.session = session;
    this.selection = selection;
    this.filter = filter;
    this.example = example;
    this.onLeave = onLeave;
    this.gridButton = keyButton("As a grid", "v", () => this.openGrid(), { hidden: true, title: "A varied 96 of the first images, as a grid of one class" });
    this.buttons = [
      keyButton("Find", "f", () => this.open(), { title: "Find images by words, or like a picture or a part of an image" }),
      keyButton("Like this", "s", () => this.showLike(), { title: "Images like the selected one first" }),
    ];
    this.keys = { s: () => this.showLike(), f: () => this.open(), v: () => this.gridButton.hidden || this.openGrid() };
  }

  /** Another list is shown. */
  follow() {
    this.gridButton.hidden = this.filter.request.sort !== "like" || !this.session.data.may_answer;
  }

  open() {
    this.example.open(this.selection.current, this.filter.openClass?.name);
  }

  /** Those most like the selected images come first. */
  showLike() {
    const { current, ids } = this.selection;
    if (!current) return this.session.showMessage("Select an image first: those like it come first then.");
    const examples = ids.size > 1 ? [...ids] : [current.id];
    if (examples.length > MOST_EXAMPLES) return this.session.showMessage(`Select ${MOST_EXAMPLES} images at most: those like all of them come first.`);
    this.filter.showLike(examples);
    this.session.showMessage(`Images like ${examples.length > 1 ? `these ${examples.length}` : current.name} come first.`);
  }

  /** A varied few of those that come first, on the Grid page: of the class of which they are unanswered, if it is one. */
  async openGrid() {
    try {
      const { selection } = await this.session.api.post("/api/gallery/grid", this.filter.request);
      const of = this.filter.openClass;
      this.onLeave();
      window.location.href = new URL(`grid?selection=${selection}${of ? `&class=${of.id}` : ""}`, window.location.href).href;
    } catch (error) {
      this.session.showMessage(/** @type {Error} */ (error).message);
    }
  }
}
