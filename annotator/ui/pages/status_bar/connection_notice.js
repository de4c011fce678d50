// @ts-check
/**
 * A server that does not answer is told in the bar at the top, in place of Streamlit's dialog, which covers the page, takes
 * all keys and advises a command that is not ours. What is decided meanwhile waits in the outbox.
 */

import { BASE_ADDRESS, UNREACHABLE_EVENT } from "../shared/api.js";

const DIALOG_SELECTOR = "[data-testid=stDialog]"; // of Streamlit 1.67; tests/promises/test_stopped_server.py shows whether it is still so
const DIALOG_HEADING = "Connection error";
const CHECK_MILLISECONDS = 2000; // milliseconds between two checks while the server does not answer
const CHECK_TIMEOUT_MILLISECONDS = 5000; // milliseconds after which a server has not answered

export class ConnectionNotice {
  /** @param {(unreachable: boolean) => void} show */
  constructor(show) {
    this.show = show;
    this.closed = false;
    this.timer = 0;
    this.isChecking = false;
    this.check = () => this.#check();
    // Our own pages are in shadow roots, whose changes are not looked at. This runs before the frame that would show it.
    this.observer = new MutationObserver(() => closeDialog() && this.check());
    this.observer.observe(document.body, { childList: true, subtree: true });
    window.addEventListener(UNREACHABLE_EVENT, this.check);
    window.addEventListener("offline", this.check);
    if (closeDialog()) this.check();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.observer.disconnect();
    window.removeEventListener(UNREACHABLE_EVENT, this.check);
    window.removeEventListener("offline", this.check);
  }

  /** Ask whether the server answers; while it does not, ask again and again. */
  async #check() {
    if (this.isChecking) return;
    clearTimeout(this.timer);
    this.isChecking = true;
    const answers = await isServerAnswering();
    this.isChecking = false;
    if (this.closed) return;
    const wasShown = this.timer !== 0;
    this.timer = answers ? 0 : window.setTimeout(this.check, CHECK_MILLISECONDS);
    this.show(!answers);
    if (answers && wasShown) window.dispatchEvent(new Event("online")); // the outbox sends what waits, without its pause
  }
}

async function isServerAnswering() {
  try {
    return (await fetch(`${BASE_ADDRESS}/_stcore/health`, { cache: "no-store", signal: AbortSignal.timeout(CHECK_TIMEOUT_MILLISECONDS) })).ok;
  } catch {
    return false;
  }
}

/** Close Streamlit's dialog about the connection, which stays closed until the next connection is lost. @returns {boolean} whether there was one */
function closeDialog() {
  const [dialog] = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(DIALOG_SELECTOR))].filter(
    (element) => element.querySelector("h1, h2, h3, [slot=title]")?.textContent === DIALOG_HEADING,
  );
  if (!dialog) return false;
  dialog.style.display = "none"; // while it fades out
  /** @type {HTMLElement | null} */ (dialog.querySelector("button[aria-label=Close]"))?.click();
  return true;
}
