// @ts-check
/**
 * The annotator's name in the cookies of this browser.
 *
 * Each project has a cookie, because browsers share cookies between the ports of a machine. The name used last is kept
 * as well: forms of new projects are filled in with it.
 */

const LAST_NAME_COOKIE = "annotator_name";
const YEAR_SECONDS = 31_536_000;

/** Keep the annotator's name for the next visit; the page script reads it. @param {string} cookie the project's @param {string} name */
export function rememberName(cookie, name) {
  for (const one of [cookie, LAST_NAME_COOKIE])
    document.cookie = `${one}=${encodeURIComponent(name)}; path=/; max-age=${YEAR_SECONDS}; samesite=strict`;
}

/** Return the name used last in any project of this host, or "". */
export function readLastName() {
  const [, value = ""] = document.cookie.match(new RegExp(`(?:^|; )${LAST_NAME_COOKIE}=([^;]*)`)) ?? [];
  try {
    return decodeURIComponent(value);
  } catch {
    return ""; // written by something else
  }
}
