// @ts-check
/**
 * How far the project is: the one measure of it, in the words of the server (snapshot/project_progress.py). The status line of a
 * page counts on from the server's figures; the line at the top of all pages (status_bar/status_bar.js) hears of it by an event of the
 * window.
 */

export const PROGRESS_EVENT = "annotator:progress";

/**
 * The server's figures, and its sentence with the counts left open.
 * @typedef {{pairs_answered: number, pairs: number, images_complete: number, images: number, template: string}} Progress
 */

/** Full only when every pair is answered. @param {Progress} progress */
export function computeShare({ pairs_answered: answered, pairs }) {
  return pairs ? Math.max(0, Math.min(answered, pairs) / pairs) : 0;
}

/** @param {Progress} progress */
export function formatProgress({ pairs_answered: answered, pairs, images_complete: complete, images, template }) {
  const within = (/** @type {number} */ count, /** @type {number} */ of) => Math.max(0, Math.min(count, of)).toLocaleString("en");
  return template.replace("{pairs_answered}", within(answered, pairs)).replace("{images_complete}", within(complete, images));
}

/** Tell the line at the top. @param {string} words */
export function announceProgress(words) {
  window.dispatchEvent(new CustomEvent(PROGRESS_EVENT, { detail: words }));
}
