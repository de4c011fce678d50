// @ts-check
/**
 * Marking tiles with a pointer: a press turns the tile, and drawn on over others it gives them the same state. A finger
 * does so after it has rested on a tile for a moment, so that it can still scroll. What is held longer and let go on the
 * same tile makes it unsure.
 */

const TOUCH_REST_MILLISECONDS = 300;
const UNSURE_HOLD_MILLISECONDS = 500; // milliseconds, as in tiles.css
const TREMBLE_PIXELS = 10; // CSS pixels a resting finger may tremble

/**
 * @param {HTMLElement} host the tiles lie in it; elements with data-index
 * @param {ShadowRoot} root
 * @param {{press: (index: number) => number | null, paint: (index: number, state: number) => void, on: () => any}} act
 *   press turns a tile and returns what it is now, null where nothing may be marked; on: whose tiles these are
 */
export function makePaintable(host, root, { press, paint, on }) {
  /** @type {number | null} what is being painted */
  let state = null;
  let pointer = -1;
  let begun = false;
  let rest = 0;
  let hold = 0;
  let from = { x: 0, y: 0 };
  /** @type {any} whose tiles are meant: what comes to lie under the pointer later is not */
  let of = null;
  /** @type {{index: number, box: Element | null} | null} the tile that was pressed, while the pointer has met no other */
  let first = null;

  /** @param {{clientX: number, clientY: number}} event */
  const tileAt = (event) => {
    const element = root.elementFromPoint(event.clientX, event.clientY);
    const tile = /** @type {HTMLElement | null | undefined} */ (element?.closest(".tile"));
    return tile && host.contains(tile) && !element.closest(".enlarge, .burst") ? Number(tile.dataset.index) : null;
  };
  /** @param {number} index */
  const begin = (index) => {
    begun = true;
    state = press(index);
  };
  /** The pointer went on, or is gone: it is no long press. */
  const letGo = () => {
    clearTimeout(hold);
    first?.box?.classList.remove("held");
    first = null;
  };
  const end = () => {
    clearTimeout(rest);
    letGo();
    state = null;
    pointer = -1;
  };
  /** @param {number} index */
  const wait = (index) => {
    const box = host.querySelector(`.tiles [data-index="${index}"]`);
    box?.classList.add("held");
    first = { index, box };
    hold = window.setTimeout(() => {
      if (state != null && of === on()) paint(index, 0);
    }, UNSURE_HOLD_MILLISECONDS);
  };

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    end();
    begun = false;
    const index = tileAt(event);
    if (index == null) return;
    pointer = event.pointerId;
    from = { x: event.clientX, y: event.clientY };
    of = on();
    if (event.pointerType === "touch") rest = window.setTimeout(() => of === on() && begin(index), TOUCH_REST_MILLISECONDS);
    else begin(index);
    wait(index);
  });
  host.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer) return;
    if (state == null) {
      if (Math.hypot(event.clientX - from.x, event.clientY - from.y) > TREMBLE_PIXELS) end();
      return;
    }
    if (of !== on()) return;
    for (const sample of event.getCoalescedEvents?.() ?? [event]) {
      const index = tileAt(sample);
      if (index === first?.index) continue;
      if (index == null) {
        clearTimeout(hold);
        continue;
      }
      if (first) paint(first.index, state); // it was the beginning of a drag, however long it rested there
      letGo();
      paint(index, state);
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
