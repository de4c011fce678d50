// @ts-check
/** Who holds the leases of a page: each page load anew, and which one it replaces. */

/**
 * The lease holder of this page load, and the one from before a reload, whose images come back. They differ, because a
 * closing page's release request can arrive after its replacement's first request.
 * @param {string} mode
 */
export function getLeaseHolders(mode) {
  const key = `annotator:holder:${mode}`;
  const holder = crypto.randomUUID();
  let instead = "";
  try {
    const known = sessionStorage.getItem(key) ?? "";
    // A duplicated tab copies sessionStorage: that holder is still in use by the tab it was copied from.
    const reloaded = /** @type {any} */ (performance.getEntriesByType("navigation")[0])?.type === "reload";
    if (reloaded || windowHolders.has(known)) instead = known;
    sessionStorage.setItem(key, holder);
  } catch {
    // Without storage the images of before come back when their lease has run out.
  }
  windowHolders.add(holder);
  return { holder, instead };
}

/** Holders of the pages that this window has shown. @type {Set<string>} */
const windowHolders = new Set();
