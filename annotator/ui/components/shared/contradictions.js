// @ts-check
/** An answer that contradicts an earlier one of the same image is asked about at once, in one line, with one key. */

import { STATE_WORDS, keyButton } from "./dom.js";

export const OVERRULE = "F8";
/** @type {[string, string]} */
export const OVERRULE_ROW = [OVERRULE, "take back the older answer that the newest one contradicts"];
const UNSURE = 0;

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
    session.say("");
    for (const other of against) clear(other);
  };
  session.say(`${names.get(id)} ${STATE_WORDS[state]} contradicts ${before}.`, true, keyButton("Take that back", OVERRULE, keep));
}

/** Take back what the newest answer contradicts, as long as the page asks about it. @param {import("./session.js").Session} session */
export function overrule(session) {
  /** @type {HTMLElement | null} */ (session.words.querySelector(`[aria-keyshortcuts="${OVERRULE}"]`))?.click();
}
