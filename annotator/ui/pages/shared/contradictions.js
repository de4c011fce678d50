// @ts-check
/** Answers that contradict earlier ones of the same images are asked about at once, in one line, with one key. */

import { STATE_WORDS, formatCount, keyButton } from "./dom.js";
import { UNSURE } from "./states.js";

export const OVERRULE_KEY = "F8";
/** @type {[string, string]} */
export const OVERRULE_ROW = [OVERRULE_KEY, "take back the older answers that the newest ones contradict"];

/**
 * Ask about what an answer contradicts.
 * @param {import("./session.js").Session} session
 * @param {number} id the class that was answered
 * @param {Map<number, number>} answers class -> state of the image, with this answer
 * @param {(class_: number) => void} clear takes the answer to a class back
 */
export function askAboutContradiction(session, id, answers, clear) {
  const { relations, names } = session;
  const state = answers.get(id) ?? UNSURE;
  const against = relations.contradicted(answers).filter((other) => other !== id && relations.contradicted(new Map([[id, state], [other, answers.get(other) ?? UNSURE]])).length > 0);
  if (!against.length) return;
  const before = against.map((other) => `${names.get(other)} ${STATE_WORDS[answers.get(other) ?? UNSURE]}`).join(", ");
  const keep = () => {
    session.showMessage("");
    for (const other of against) clear(other);
  };
  session.showMessage(`${names.get(id)} ${STATE_WORDS[state]} contradicts ${before}.`, true, keyButton("Take that back", OVERRULE_KEY, keep));
}

/**
 * Ask about what the answers of a batch, which the server has stored, contradict.
 * @param {import("./session.js").Session} session
 * @param {[number, number, number, number, number][]} found image, class, state; the other class and its state
 * @param {(cells: [number, number, number][]) => void} clear takes these answers back, as one step
 */
export function askAboutBatch(session, found, clear) {
  const older = new Map(found.map(([image, id, state]) => [`${image} ${id}`, /** @type {[number, number, number]} */ ([image, id, state])]));
  const words = (/** @type {[number, number][]} */ pairs) =>
    [...new Set(pairs.map(([id, state]) => `${session.names.get(id)} ${STATE_WORDS[state]}`))].sort().join(", ");
  const images = new Set(found.map(([image]) => image)).size;
  session.showMessage(
    `${words(found.map(([, , , id, state]) => [id, state]))} contradicts ${words(found.map(([, id, state]) => [id, state]))} on ${formatCount(images, "image")}.`,
    true,
    keyButton(older.size === 1 ? "Take that back" : "Take those back", OVERRULE_KEY, () => {
      session.showMessage("");
      clear([...older.values()]);
    }),
  );
}

/** Take back what the newest answer contradicts, as long as the page asks about it. @param {import("./session.js").Session} session */
export function overrule(session) {
  /** @type {HTMLElement | null} */ (session.words.querySelector(`[aria-keyshortcuts="${OVERRULE_KEY}"]`))?.click();
}
