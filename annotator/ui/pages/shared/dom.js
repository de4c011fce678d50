// @ts-check
/** Small helpers to build the page with. */

/**
 * Make an element. Text is never parsed as markup: names of classes and files come from outside.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Record<string, any>} [props] @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children);
  return node;
}

/** Of an image that somebody is still to answer blind. */
export const HIDDEN_WORDS = "Answers are hidden while this image waits for a blind answer";

export const HIDDEN_DRAW_MILLISECONDS = 100; // milliseconds after which something counts as drawn in a window that draws nothing

const KEY_SIGNS = {
  " ": "Space", Backspace: "⌫", "Shift+Backspace": "⇧⌫", Enter: "↵", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→",
  PageUp: "PgUp", PageDown: "PgDn", "Shift+Enter": "⇧↵", "Shift+ArrowUp": "⇧↑",
};

/** @param {string} key */
export function kbd(key) {
  return el("kbd", {}, KEY_SIGNS[key] ?? (key.length === 1 ? key.toUpperCase() : key));
}

/**
 * A button that shows its key.
 * @param {string} text @param {string} key @param {() => void} act @param {Record<string, any>} [props]
 */
export function keyButton(text, key, act, props = {}) {
  return el(
    "button",
    { type: "button", onclick: act, "aria-keyshortcuts": key === " " ? "Space" : key, ...props },
    el("span", {}, text),
    kbd(key),
  );
}

/** Set the text of an element, which is left alone where it has that text already. @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * An image's name, in the direction of its own letters, and what is said of the image.
 * @param {Element} node @param {string | undefined} name @param {(string | undefined | null | false)[]} parts those that are empty are left out
 */
export function showCaption(node, name, parts) {
  const said = parts.filter(Boolean).join(" · ");
  node.replaceChildren(...(name ? [el("bdi", {}, name)] : []), name && said ? " · " : "", said);
}

/** @param {string} text */
export function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * A number with its noun: "1 image", "1,234 images".
 * @param {number} count @param {string} noun one of them @param {string} [plural] where it is not the noun with an s
 */
export function formatCount(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

/**
 * A model's probability in percent. It is never shown as 100 % or 0 %, which are for counts.
 * @param {number} probability 0..1
 */
export function formatProbability(probability) {
  const whole = Math.round(probability * 100);
  return whole > 99 ? ">99\u00a0%" : whole < 1 ? "<1\u00a0%" : `${whole}\u00a0%`;
}

/**
 * What models from elsewhere say: "yolo-world 0.83".
 * @param {[string, number][]} models name and score
 */
export function describeModels(models) {
  return models.map(([name, score]) => `${name} ${score.toFixed(2)}`).join(" \u00b7 ");
}

export const STATE_WORDS = { 1: "present", "-1": "absent", 0: "unsure" };

/**
 * Call `act` once the frame that is due has been drawn. A hidden window draws no frames, so a timer calls it as well: it
 * may be called twice.
 * @param {() => void} act
 */
export function onDraw(act) {
  requestAnimationFrame(() => window.setTimeout(act));
  window.setTimeout(act, HIDDEN_DRAW_MILLISECONDS);
}

/**
 * A function that calls `act` after the frame that is due, once for any number of calls: work that must not delay the
 * next picture.
 * @param {() => void} act
 */
export function afterPaint(act) {
  let due = false;
  let timer = 0;
  const run = () => {
    if (!due) return;
    due = false;
    clearTimeout(timer);
    act();
  };
  return () => {
    if (due) return;
    due = true;
    timer = window.setTimeout(run, 100); // a page in the background draws no frames
    requestAnimationFrame(() => window.setTimeout(run, 0));
  };
}
