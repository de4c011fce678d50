// @ts-check
/** How well a name fits what somebody typed. */

/**
 * 0: the name begins with it, 1: a word of it does, 2: it is somewhere inside, 3: its letters come in this order,
 * Infinity: none of these. Nothing typed fits everything equally well.
 * @param {string} name lower case @param {string} typed lower case
 */
export function scoreMatch(name, typed) {
  if (name.startsWith(typed)) return 0;
  const inside = name.indexOf(typed);
  if (inside > 0) return name.split(/[\s_/-]+/).some((word) => word.startsWith(typed)) ? 1 : 2;
  let at = 0;
  for (const letter of typed) {
    if (letter === " ") continue;
    at = name.indexOf(letter, at) + 1;
    if (at === 0) return Infinity;
  }
  return 3;
}
