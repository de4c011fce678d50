// @ts-check
/**
 * What a complete project holds, and what may be done with it: an export, a check of answers that may be wrong, an audit.
 *
 * It stays as it is until something is pressed. News changes words and shows buttons where room was left for them, so that
 * nothing moves under the pointer.
 */

import { RepeatExport } from "./repeat_export.js";
import { el, formatCount } from "../shared/dom.js";
import { buildOnwardLinks } from "../shared/placeholder.js";

const MAX_LISTED_CLASSES = 12; // classes, the most frequent first
const REOPENED_TEXT = "No longer complete";
const ONWARD_PAGES = ["certificate", "review", "gallery"];

/**
 * @typedef {{format: string, name: string, on_server: boolean}} LastExport
 * @typedef {{heading: string, line: string, beyond: boolean, labels: [string, number][], doubted: string, doubts: boolean, findings: string,
 *            audit: string, audit_is_drawn: boolean, exports: boolean, export: LastExport | null}} Complete
 *   beyond: whether something is open, and only the target is reached; labels: classes and the images that show them; doubts:
 *   whether answers may be checked; findings: what the last audit found; exports: whether this person may
 */

export class CompletionPanel {
  /**
   * @param {import("../shared/session.js").Session} session
   * @param {(extra: "" | "relabel" | "audit" | "beyond") => void} onAsk told of what the person wants to be asked, "": what is open again
   */
  constructor(session, onAsk) {
    this.session = session;
    this.onAsk = onAsk;
    this.heading = "";
    this.line = el("p", {});
    this.goOn = el("button", { type: "button", class: "main", onclick: () => onAsk(this.isBeyond ? "beyond" : "") }, "Go on");
    this.repeatExport = new RepeatExport(session);
    this.isBeyond = false;
    this.doubted = el("p", {});
    this.check = el("button", { type: "button", onclick: () => onAsk("relabel") }, "Check them");
    this.checking = el("div", { class: "offer" }, this.doubted, this.check);
    this.findings = el("p", { class: "findings" });
    this.audit = el("p", {});
    this.begin = el("button", { type: "button", onclick: () => this.#audit() });
    this.auditing = el("div", { class: "offer" }, this.findings, this.audit, this.begin);
    this.labels = el("table", {});
    this.links = el("div", {});
    // The second press of a double click on the last task lands here: it selects no text.
    const once = (/** @type {MouseEvent} */ event) => event.detail > 1 && event.preventDefault();
    this.element = el("section", { class: "finish", "aria-label": "Complete", hidden: true, onmousedown: once },
      el("div", { class: "offer held" }, this.line, this.goOn),
      el("div", { class: "columns" },
        el("div", { class: "offers" }, this.repeatExport.element, this.checking, this.auditing),
        this.labels),
      this.links);
  }

  get isShown() {
    return !this.element.hidden;
  }

  /** @param {Complete} complete */
  show(complete) {
    if (!this.isShown) {
      this.repeatExport.begin(complete.export);
      this.repeatExport.element.hidden = !complete.exports;
      this.links.replaceChildren(buildOnwardLinks(this.session, ONWARD_PAGES));
      this.auditing.hidden = !complete.audit;
      this.element.hidden = false;
    }
    this.heading = complete.heading;
    this.line.textContent = complete.line;
    this.labels.replaceChildren(...buildLabelRows(complete.labels));
    this.isBeyond = complete.beyond;
    this.goOn.hidden = !complete.beyond;
    this.checking.hidden = complete.beyond;
    this.findings.textContent = complete.findings.replaceAll(" %", "\u00a0%");
    this.findings.hidden = !complete.findings;
    this.doubted.textContent = complete.doubted;
    this.check.hidden = !complete.doubts;
    this.audit.textContent = complete.audit;
    this.isDrawn = complete.audit_is_drawn;
    this.begin.textContent = this.isDrawn ? "Go on with the audit" : "Start an audit";
  }

  /** Something is open again: others took an answer back, or there are new images. */
  reopen() {
    this.heading = REOPENED_TEXT;
    this.isBeyond = false;
    this.line.textContent = "Something is unanswered again.";
    this.goOn.hidden = false;
  }

  hide() {
    this.element.hidden = true;
  }

  async #audit() {
    try {
      if (!this.isDrawn) await this.session.api.post("/api/autopilot/audit", {});
      this.onAsk("audit");
    } catch (error) {
      this.session.showMessage(`${error.message}`, true);
    }
  }
}

/** The labels of each class, as bars. @param {[string, number][]} labels the most frequent first */
function buildLabelRows(labels) {
  const most = Math.max(1, ...labels.map(([, count]) => count));
  const listed = labels.slice(0, MAX_LISTED_CLASSES).map(([name, count]) => {
    const bar = el("span", { class: "bar-of-labels" });
    bar.style.width = `${(100 * count) / most}%`;
    return el("tr", {}, el("th", { scope: "row", dir: "auto" }, name), el("td", {}, count.toLocaleString("en")), el("td", { "aria-hidden": "true" }, bar));
  });
  const more = labels.length - listed.length;
  const rest = more > 0 ? [el("tfoot", {}, el("tr", {}, el("td", { colspan: "3" }, `${formatCount(more, "more class", "more classes")}`)))] : [];
  return [el("caption", {}, "Labels by class"), el("tbody", {}, ...listed), ...rest];
}
