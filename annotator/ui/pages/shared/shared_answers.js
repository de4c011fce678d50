// @ts-check
/** Answers that other images get, too: the twins of an image, or the other images of its event. */

/** @typedef {{id: number, labels: number[]}} Other  labels: the classes that somebody has answered */
/** @typedef {[number, number, number]} Cell  image, class, state */

/**
 * The answers that these images get: those that they have no answer for yet.
 * @param {Other[]} images @param {[number, number][]} answers [class, state] @returns {Cell[]}
 */
export function findMissingAnswers(images, answers) {
  return images.flatMap(({ id, labels }) => answers.filter(([class_]) => !labels.includes(class_))
    .map(([class_, state]) => /** @type {Cell} */ ([id, class_, state])));
}
