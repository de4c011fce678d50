// @ts-check
/**
 * Choices that this browser keeps for the person, as JSON. Where its storage is blocked or damaged nothing is kept, and
 * the next visit begins like the first.
 */

/** What is kept under a name; null where that is nothing, or cannot be read. @param {string} name @returns {any} */
export function readSetting(name) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} name @param {unknown} value */
export function writeSetting(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // It holds until the page is left.
  }
}
