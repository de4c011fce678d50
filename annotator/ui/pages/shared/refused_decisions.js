// @ts-check
/**
 * Decisions that the server refused for good, each with the reason. They stay in this browser until the person dismisses
 * them, and can be read, downloaded, and sent again.
 */

import { capitalize, el, kbd } from "./dom.js";
import { describeDecision } from "./decision_words.js";

/** @typedef {{decision: any, reason: string, at: string}} RefusedDecision  at: when it was refused, ISO 8601 */

export class RefusedDecisions {
  /** @param {string} project @param {() => void} onChange */
  constructor(project, onChange) {
    this.prefix = `annotator:${project}:aside:`;
    this.onChange = onChange;
    /** By uuid, the newest last. @type {Map<string, RefusedDecision>} */
    this.entries = new Map();
    /** Uuids of those that the storage had no room for. @type {Set<string>} */
    this.loose = new Set();
    this.read();
  }

  get size() {
    return this.entries.size;
  }

  /** The newest. @returns {RefusedDecision | undefined} */
  get newest() {
    return [...this.entries.values()].at(-1);
  }

  /** Whether this browser keeps it past the end of the page. @param {string} uuid @param {any} decision @param {string} reason */
  add(uuid, decision, reason) {
    const entry = { decision, reason, at: new Date().toISOString() };
    this.entries.set(uuid, entry);
    try {
      localStorage.setItem(this.prefix + uuid, JSON.stringify(entry));
      return true;
    } catch {
      this.loose.add(uuid);
      return false;
    }
  }

  /** @param {string} uuid */
  dismiss(uuid) {
    this.entries.delete(uuid);
    this.loose.delete(uuid);
    try {
      localStorage.removeItem(this.prefix + uuid);
    } catch {
      // Storage that is blocked holds nothing.
    }
    this.onChange();
  }

  /** Read the storage, which other tabs share: they may have added or dismissed some. */
  read() {
    const values = readStoredDecisions(this.prefix);
    const entries = [...values].flatMap(([uuid, entry]) => (entry?.decision ? [/** @type {const} */ ([uuid, entry])] : []));
    entries.sort(([, first], [, second]) => String(first.at).localeCompare(String(second.at)));
    this.entries = new Map([...entries, ...[...this.entries].filter(([uuid]) => this.loose.has(uuid))]);
  }
}

/**
 * Everything in the storage under a prefix, by the rest of its key; undefined for what is damaged.
 * @param {string} prefix @returns {Map<string, any>}
 */
export function readStoredDecisions(prefix) {
  const values = new Map();
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) values.set(key.slice(prefix.length), parseJson(localStorage.getItem(key)));
  } catch {
    // Storage that is blocked holds nothing for us.
  }
  return values;
}

/** @param {string | null} text */
function parseJson(text) {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

export class RefusedDecisionsDialog {
  /**
   * @param {RefusedDecisions} refused
   * @param {{names: () => Map<number, string>, onRetry: () => void}} options  names: of the classes
   */
  constructor(refused, { names, onRetry }) {
    this.refused = refused;
    this.names = names;
    this.list = el("ul");
    this.element = el("dialog", { class: "aside", "aria-label": "Answers not saved" },
      el("h2", {}, "Answers not saved"),
      el("p", { class: "quiet" }, "The server refused these answers. This browser keeps them until you dismiss them."),
      this.list,
      el("div", { class: "tools" },
        el("button", { type: "button", onclick: () => this.download() }, "Download as JSON"),
        el("button", { type: "button", onclick: () => {
          this.element.close();
          onRetry();
        } }, "Send again"),
        el("button", { type: "button", class: "main", onclick: () => this.element.close() }, "Close", kbd("Esc"))));
  }

  get isOpen() {
    return this.element.open;
  }

  open() {
    this.#draw();
    this.element.showModal();
  }

  /** While the dialog is open it takes Escape; all other keys are left to the browser. @param {string} key */
  key(key) {
    if (key !== "Escape") return false;
    this.element.close();
    return true;
  }

  download() {
    const text = JSON.stringify([...this.refused.entries.values()], null, 2);
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    el("a", { href: address, download: "decisions-not-saved.json" }).click();
    window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  #draw() {
    this.list.replaceChildren(...[...this.refused.entries].reverse().map(([uuid, { decision, reason }]) =>
      el("li", { "data-uuid": uuid },
        el("div", {}, el("b", {}, describeWithAuthor(decision, this.names())), el("span", { class: "quiet" }, reason)),
        el("button", { type: "button", onclick: () => {
          this.refused.dismiss(uuid);
          if (this.refused.size) this.#draw();
          else this.element.close();
        } }, "Dismiss"))));
  }
}

/** What a decision said, and who gave it. @param {any} entry @param {Map<number, string>} names of the classes */
function describeWithAuthor(entry, names) {
  return capitalize(describeDecision(entry, names)) + (entry.annotator ? `, by ${entry.annotator}` : "");
}
