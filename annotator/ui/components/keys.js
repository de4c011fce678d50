// @ts-check
/**
 * Keys that work without clicking first, and that Streamlit never sees: its own "r" and "c" would act on keydown as
 * well as on keyup, so both are stopped at the window before it.
 */

/** Keys for classes, in the order in which hands find them. Commands use none of them. */
export const CLASS_KEYS = [..."1234567890qwertyuiopasdfghjklzxcvbnm"];

/**
 * @param {ShadowRoot | HTMLElement} root our own part of the page
 * @param {(key: string, event: KeyboardEvent) => boolean} handle true when the key was ours
 * @returns {() => void} stops listening
 */
export function listen(root, handle) {
  // Reached by Tab, a button or link has Enter and Space for itself; clicked, it has not: a person who came here by a
  // click on "Annotate" and presses Enter means the image.
  let tabbed = false;
  const point = () => {
    tabbed = false;
  };
  /** @param {KeyboardEvent} event */
  const down = (event) => {
    if (typesElsewhere(event, root)) return;
    if (event.isComposing) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!plain && !isUndo(event)) return;
    if (event.key === "Tab") tabbed = true;
    if (tabbed && pressesButton(event)) {
      event.stopImmediatePropagation();
      return;
    }
    if (handle(isUndo(event) ? "undo" : keyName(event), event)) event.preventDefault();
    event.stopImmediatePropagation();
  };
  /** @param {KeyboardEvent} event */
  const up = (event) => {
    if (!typesElsewhere(event, root) && !event.ctrlKey && !event.metaKey) event.stopImmediatePropagation();
  };
  window.addEventListener("keydown", down, true);
  window.addEventListener("keyup", up, true);
  window.addEventListener("pointerdown", point, true);
  return () => {
    window.removeEventListener("keydown", down, true);
    window.removeEventListener("keyup", up, true);
    window.removeEventListener("pointerdown", point, true);
  };
}

/** The key's name; digits by their place, so that Shift+1 is still "1". @param {KeyboardEvent} event */
export function keyName(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (digit) return digit[1];
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/** @param {KeyboardEvent} event */
function isUndo(event) {
  return (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
}

/** Someone types into a field that is not ours, or moves about in Streamlit's own widgets. */
function typesElsewhere(/** @type {KeyboardEvent} */ event, /** @type {ShadowRoot | HTMLElement} */ root) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  if (!(target instanceof HTMLElement)) return false;
  if (target.getRootNode() === root) return false;
  return Boolean(target.closest("input, textarea, select, [contenteditable], [role=slider], [role=dialog], [role=listbox]"));
}

/** Enter or Space on something that acts on them itself. @param {KeyboardEvent} event */
function pressesButton(event) {
  if (event.key !== "Enter" && event.key !== " ") return false;
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  return target instanceof HTMLElement && target.matches("button, a, summary");
}
