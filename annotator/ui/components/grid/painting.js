// @ts-check
/**
 * Marking tiles with a pointer: a press turns the tile, and drawn on over others it gives them the same state. A finger
 * does so after it has rested on a tile for a moment, so that it can still scroll.
 */

const REST = 350; // milliseconds
const STILL = 10; // CSS pixels a resting finger may tremble

/**
 * @param {HTMLElement} host the tiles lie in it; elements with data-index
 * @param {ShadowRoot} root
 * @param {{press: (index: number) => number | null, paint: (index: number, state: number) => void}} act
 *   press turns a tile and returns what it is now, null where nothing may be marked
 */
export function paintable(host, root, { press, paint }) {
  /** @type {number | null} what is being painted */
  let state = null;
  let pointer = -1;
  let begun = false;
  let rest = 0;
  let from = { x: 0, y: 0 };

  /** @param {{clientX: number, clientY: number}} event */
  const tileAt = (event) => {
    const element = root.elementFromPoint(event.clientX, event.clientY);
    const tile = /** @type {HTMLElement | null | undefined} */ (element?.closest(".tile"));
    return tile && host.contains(tile) && !element.closest(".enlarge") ? Number(tile.dataset.index) : null;
  };
  /** @param {number} index */
  const begin = (index) => {
    begun = true;
    state = press(index);
  };
  const end = () => {
    clearTimeout(rest);
    state = null;
    pointer = -1;
  };

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    end();
    begun = false;
    const index = tileAt(event);
    if (index == null) return;
    pointer = event.pointerId;
    from = { x: event.clientX, y: event.clientY };
    if (event.pointerType === "touch") rest = window.setTimeout(() => begin(index), REST);
    else begin(index);
  });
  host.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer) return;
    if (state == null) {
      if (Math.hypot(event.clientX - from.x, event.clientY - from.y) > STILL) clearTimeout(rest);
      return;
    }
    for (const sample of event.getCoalescedEvents?.() ?? [event]) {
      const index = tileAt(sample);
      if (index != null) paint(index, state);
    }
  });
  // A finger that did not rest: the browser says that it was a tap, and not the beginning of a scroll.
  host.addEventListener("click", (event) => {
    if (event.detail === 0 || begun) return;
    const index = tileAt(event);
    if (index != null) press(index);
  });
  host.addEventListener("touchmove", (event) => state != null && event.preventDefault(), { passive: false });
  host.addEventListener("contextmenu", (event) => begun && event.preventDefault());
  host.addEventListener("dragstart", (event) => event.preventDefault());
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
  return () => {
    end();
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
  };
}
