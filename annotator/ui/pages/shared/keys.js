// @ts-check
/**
 * Keys that work without a click into the page first. Events are stopped at the window, before Streamlit sees them: its
 * own shortcuts "r" and "c" act on keydown and on keyup.
 */

const ALT_CHARACTERS = ["[", "]", "\\"]; // on a Mac, many layouts have them on Alt and a digit

/**
 * @param {ShadowRoot | HTMLElement} root our own part of the page
 * @param {(key: string, event: KeyboardEvent) => boolean} handle true when the key was ours
 * @param {(key: string) => void} [released] told of keys that are let go
 * @returns {() => void} stops listening
 */
export function listenToKeys(root, handle, released) {
  // Enter and Space press a button or link that was reached by Tab, but not one that has the focus from a click: after a
  // click on "Annotate" in the navigation, Enter is about the image.
  let tabbed = false;
  const point = () => {
    tabbed = false;
  };
  // A click on a picture focuses an element around the component, which would get a focus ring at the next key.
  const rest = () => {
    const { activeElement } = document;
    const host = root instanceof ShadowRoot ? root.host : root;
    if (activeElement !== host && activeElement?.contains(host)) /** @type {HTMLElement} */ (activeElement).blur();
  };
  /** @param {KeyboardEvent} event */
  const down = (event) => {
    if (typesElsewhere(event, root)) return;
    if (event.isComposing) return;
    const command = getCommandName(event);
    const written = event.getModifierState("AltGraph") || (event.altKey && ALT_CHARACTERS.includes(event.key)); // a character of its own, such as [ on many layouts
    if (!command && !written && (event.ctrlKey || event.metaKey || event.altKey)) return;
    if (command && isTyping(event) && command !== "find" && command !== "images") return; // a field has its own undo
    if (event.key === "Tab") tabbed = true;
    if (tabbed && pressesButton(event)) {
      event.stopImmediatePropagation();
      return;
    }
    if (handle(command || getKeyName(event), event)) event.preventDefault();
    event.stopImmediatePropagation();
  };
  /** @param {KeyboardEvent} event */
  const up = (event) => {
    if (typesElsewhere(event, root) || event.ctrlKey || event.metaKey) return;
    released?.(getKeyName(event));
    event.stopImmediatePropagation();
  };
  // A window that loses the focus gets no keyup.
  const away = () => released?.("Shift");
  window.addEventListener("keydown", down, true);
  window.addEventListener("keyup", up, true);
  window.addEventListener("pointerdown", point, true);
  window.addEventListener("mouseup", rest, true);
  window.addEventListener("blur", away);
  return () => {
    window.removeEventListener("keydown", down, true);
    window.removeEventListener("keyup", up, true);
    window.removeEventListener("pointerdown", point, true);
    window.removeEventListener("mouseup", rest, true);
    window.removeEventListener("blur", away);
  };
}

/** The key's name; digits by their place, so that Shift+1 is still "1". @param {KeyboardEvent} event */
function getKeyName(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  // On layouts that have these on a digit's key they are still themselves, which are commands.
  if (digit && !["/", "?", ...ALT_CHARACTERS].includes(event.key)) return digit[1];
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/**
 * The visible element a key goes to. A field or button of a dialog that was just closed keeps the focus until the next
 * frame; a key that comes earlier belongs to the page (null).
 * @param {KeyboardEvent} event @returns {HTMLElement | null}
 */
function findTarget(event) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  return target instanceof HTMLElement && target.checkVisibility() ? target : null;
}

/** Whether the person is typing text into a field. @param {KeyboardEvent} event */
export function isTyping(event) {
  const target = findTarget(event);
  if (!target) return false;
  return target.matches("textarea, select, input:not([type=range], [type=checkbox], [type=radio], [type=button])");
}

/** Undo, redo, find and others, which keep the keys they have everywhere; and "Alt+1". @param {KeyboardEvent} event */
function getCommandName(event) {
  if (event.altKey && !event.ctrlKey && !event.metaKey) return getAltName(event);
  const control = (event.ctrlKey || event.metaKey) && !event.altKey;
  const key = event.key.toLowerCase();
  if (control && key === "z") return event.shiftKey ? "redo" : "undo";
  if (control && key === "y") return "redo";
  if (control && key === "k") return "find";
  if (control && key === "a") return "all";
  if (control && key === "g") return "go";
  if (control && key === "enter") return "set";
  if (control && key === "p" && !event.shiftKey) return "images";
  if (!control && !event.altKey && event.shiftKey && event.key === "Backspace") return "redo";
  return "";
}

/** A letter or digit with Alt; on a Mac, Alt makes another character of it. @param {KeyboardEvent} event */
function getAltName({ key, code }) {
  if (ALT_CHARACTERS.includes(key)) return "";
  const plain = /^[a-z]$/i.test(key) ? key : /^(?:Key|Digit|Numpad)(\w)$/.exec(code)?.[1];
  return plain ? `Alt+${plain.toLowerCase()}` : "";
}

/** Whether the key goes to a field that is not ours, or to one of Streamlit's widgets. */
function typesElsewhere(/** @type {KeyboardEvent} */ event, /** @type {ShadowRoot | HTMLElement} */ root) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  if (!(target instanceof HTMLElement)) return false;
  if (target.getRootNode() === root) return false;
  return Boolean(target.closest("input, textarea, select, [contenteditable], [role=slider], [role=dialog], [role=listbox], [role=menu]"));
}

/** Enter or Space on something that acts on them itself. @param {KeyboardEvent} event */
function pressesButton(event) {
  if (event.key !== "Enter" && event.key !== " ") return false;
  const target = findTarget(event);
  if (!target) return false;
  // A tile is turned with Space; Enter is the whole grid's, wherever one has tabbed to.
  if (event.key === "Enter" && target.dataset.enter === "page") return false;
  return target.matches("button, a, summary");
}
