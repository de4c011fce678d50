// @ts-check
/**
 * What this page has said of cells and an answer of the server may not know yet: every answer that was asked for before
 * the decision was saved shows the cell as it was before.
 */

/** @typedef {{state: number | null, uuid: string, until: number}} Saying  until: newest request that may not know it */

export class LocalAnswers {
  /** @param {import("../shared/outbox.js").Outbox} outbox */
  constructor(outbox) {
    this.outbox = outbox;
    /** Image -> class -> what was said last. @type {Map<number, Map<number, Saying>>} */
    this.cells = new Map();
  }

  /** By the newest decision in the outbox. @param {[number, number, number | null][]} cells image, class, state; null: no answer */
  add(cells) {
    const uuid = [...this.outbox.waiting.keys()].at(-1) ?? "";
    for (const [image, class_, state] of cells) {
      const ofImage = this.cells.get(image) ?? new Map();
      ofImage.set(class_, { state, uuid, until: Infinity });
      this.cells.set(image, ofImage);
    }
  }

  /** @param {[number, number][]} cells */
  forget(cells) {
    for (const [image, class_] of cells) this.cells.get(image)?.delete(class_);
  }

  /**
   * Drop what every answer to come knows.
   * @param {number} newest number of the newest request @param {number} oldest number of the oldest one under way
   */
  dropKnown(newest, oldest) {
    for (const [image, ofImage] of this.cells) {
      for (const [class_, saying] of ofImage) {
        if (saying.until === Infinity && !this.outbox.waiting.has(saying.uuid)) saying.until = newest;
        if (saying.until < oldest) ofImage.delete(class_);
      }
      if (!ofImage.size) this.cells.delete(image);
    }
  }

  /**
   * The image as it is with what was said.
   * @param {import("./listing.js").Image} image @param {number} number of the request that brought it
   */
  applyTo(image, number) {
    const ofImage = this.cells.get(image.id);
    if (!ofImage) return image;
    const labels = new Map(image.labels);
    for (const [class_, { state, until }] of ofImage) {
      if (number !== Infinity && until < number) continue;
      if (state == null) labels.delete(class_);
      else labels.set(class_, state);
    }
    return { ...image, labels: /** @type {[number, number][]} */ ([...labels]) };
  }
}
