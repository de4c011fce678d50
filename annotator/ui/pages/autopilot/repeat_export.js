// @ts-check
/** The export in one press, with the choices of the last one; before the first one a link to the page that has them. */

import { el } from "../shared/dom.js";

const POLL_MILLISECONDS = 400; // milliseconds between two looks at how far it is

export class RepeatExport {
  /** @param {import("../shared/session.js").Session} session */
  constructor(session) {
    this.session = session;
    const [, href] = session.data.pages.export ?? ["", ""];
    this.line = el("p", {});
    this.button = el("button", { type: "button", class: "main", onclick: () => this.run() }, "Export");
    this.choose = el("a", { href });
    this.said = el("p", { class: "said", role: "status" });
    this.element = el("div", { class: "offer" }, this.line, el("div", { class: "tools onward" }, this.button, this.choose), this.said);
  }

  /** @param {import("./completion_panel.js").LastExport | null} last null: this person has not exported yet */
  begin(last) {
    this.button.hidden = !last;
    this.choose.textContent = last ? "Other choices" : "Choose how to export";
    this.choose.classList.toggle("main", !last);
    const file = last && (last.on_server ? `the folder ${last.name} on the server` : `${last.name}.zip`);
    this.line.textContent = last ? `Export as last time: ${last.format}, ${file}.` : "You have not exported yet.";
    this.said.hidden = !last;
    this.said.replaceChildren();
  }

  async run() {
    const { api } = this.session;
    this.button.disabled = true;
    try {
      this.said.textContent = "Exporting...";
      await api.post("/api/export", {});
      while (this.element.isConnected) {
        const state = await this.#state();
        if (state && !state.running) {
          this.#showEnd(state.outcome);
          break;
        }
        this.said.textContent = state ? state.running : "The server does not answer. Waiting for it...";
        await new Promise((resume) => window.setTimeout(resume, POLL_MILLISECONDS));
      }
    } catch (error) {
      this.said.textContent = `${error.message}`;
    } finally {
      this.button.disabled = false;
    }
  }

  /** How far it is; null while the server cannot be reached: it goes on without this page. */
  #state() {
    return this.session.api.post("/api/export/state", {}).catch((/** @type {import("../shared/api.js").ApiError} */ error) => {
      if (error.status) throw error;
      return null;
    });
  }

  /** @param {{error: string, download: {id: string, name: string, size: string} | null, folder: string, said: string} | null} outcome */
  #showEnd(outcome) {
    if (!outcome) {
      this.said.textContent = "The server was started again meanwhile, and nothing was exported. Export again.";
      return;
    }
    if (!outcome.download && !outcome.folder) {
      this.said.textContent = outcome.error || "The export was cancelled.";
      return;
    }
    if (!outcome.download) {
      this.said.textContent = `Written to ${outcome.folder}: ${outcome.said}`;
      return;
    }
    const { id, name, size } = outcome.download;
    const link = el("a", { href: this.session.api.url(`/api/download/${encodeURIComponent(id)}`), download: name }, `${name}, ${size}`);
    this.said.replaceChildren("Downloaded: ", link, `. ${outcome.said}`);
    link.click();
  }
}
