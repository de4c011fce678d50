// @ts-check
/** Small helpers to build the page with, and the line at its foot that all components share. */

/**
 * An element. Text is always text, never markup: names of classes and files come from strangers.
 * @param {string} tag @param {Record<string, any>} [props] @param {(Node | string)[]} children
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

/** @param {string} key */
export function kbd(key) {
  const names = { " ": "Space", Backspace: "⌫", Enter: "↵", ArrowDown: "↓", ArrowUp: "↑" };
  return el("kbd", {}, names[key] ?? key.toUpperCase());
}

/**
 * A button that shows its key.
 * @param {string} text @param {string} key @param {() => void} act @param {Record<string, any>} [props]
 */
export function keyButton(text, key, act, props = {}) {
  const named = { Backspace: "Backspace", Enter: "Enter", " ": "Space" };
  return el(
    "button",
    { type: "button", onclick: act, "aria-keyshortcuts": named[key] ?? key, ...props },
    el("span", {}, text),
    kbd(key),
  );
}

/**
 * "12 saved, 0 waiting" and the quiet line about the worker.
 * @param {HTMLElement} foot @param {import("./outbox.js").Outbox} outbox @param {import("./hand.js").Hand} hand
 */
export function showFoot(foot, outbox, hand) {
  const waiting = outbox.waiting.size;
  const trouble = outbox.trouble || hand.trouble;
  const parts = [
    el("span", { class: waiting ? "waiting" : "saved", role: "status", "data-waiting": waiting, "data-saved": outbox.saved },
      waiting ? `${waiting} waiting to be saved` : `${outbox.saved} saved`),
  ];
  if (trouble) parts.push(el("span", { class: "trouble", role: "alert" }, `${capital(trouble)}. Nothing is lost; trying again.`));
  for (const { reason } of outbox.refused.slice(-1)) {
    parts.push(el("span", { class: "trouble", role: "alert" },
      `${outbox.refused.length} not accepted: ${reason}.`));
  }
  const { left, mine, worker } = hand.news;
  if (left != null) parts.push(el("span", {}, `${left.toLocaleString("en")} images without a label`));
  parts.push(el("span", {}, `${mine.toLocaleString("en")} decisions by you`));
  parts.push(el("span", { class: "worker" }, worker));
  foot.replaceChildren(...parts);
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export const STATE_WORDS = { 1: "present", "-1": "absent", 0: "unsure" };

/**
 * A function that does this once the frame that is due has been drawn, once for any number of calls: the next picture
 * goes first.
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
