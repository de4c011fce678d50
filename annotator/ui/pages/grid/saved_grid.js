// @ts-check
/** The grid that somebody left to fix one of its images: it is there again, as it was marked, when they come back. */

const MAX_AGE_MILLISECONDS = 3_600_000; // milliseconds after which it is not the same piece of work any more

/** @typedef {import("./grid_tiles.js").Grid} Grid */

/** @param {string} project @returns {string} where it is kept, in this tab */
const buildStorageKey = (project) => `annotator:${project}:grid-kept`;

/** @param {string} project @param {object} choice what the page was asked for @param {Grid} grid @param {number} image that is fixed */
export function saveGrid(project, choice, grid, image) {
  const { id, class: class_, run, share, start, began, waiting, at, hidesPredictions } = grid;
  const tiles = grid.tiles.map((tile) => ({ ...tile }));
  const plain = { id: `kept ${id}`, class: class_, run, share, start, began, waiting, at, hidesPredictions, tiles, fixed: image };
  try {
    sessionStorage.setItem(buildStorageKey(project), JSON.stringify({ choice: JSON.stringify(choice), left: Date.now(), grid: plain }));
  } catch {
    // Then the server gives the best grid there is, as after a reload.
  }
}

/** The kept grid, once. @param {string} project @param {object} choice what the page is asked for now @returns {Grid | null} */
export function takeSavedGrid(project, choice) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(buildStorageKey(project)) ?? "null");
    sessionStorage.removeItem(buildStorageKey(project));
    const same = kept && kept.choice === JSON.stringify(choice) && Date.now() - kept.left < MAX_AGE_MILLISECONDS;
    return same ? kept.grid : null;
  } catch {
    return null;
  }
}

/**
 * Without the tile of the fixed image if its class has another answer now: the grid's own mark is not about that.
 * @param {Grid} grid @param {any} item the image as the server has it now; null: it could not be asked
 */
export function dropFixedTile(grid, item) {
  const answer = item?.labels.find((/** @type {any} */ label) => label.class === grid.class);
  grid.tiles = grid.tiles.filter((tile) => tile.id !== item?.id || (answer?.state ?? null) === (tile.state ?? null));
  grid.fixed = undefined;
}
