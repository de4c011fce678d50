// @ts-check
/** What stands on the page of the speed test while no task does: what it is, how to begin, and what came of it. */

import { el, formatCount, keyButton } from "../shared/dom.js";

/** @typedef {{name: string, about: string, default: number, seconds: number, low: number, high: number, answers: number, an_hour: number | null, labels_an_hour: number | null}} Figure */

export class SpeedTestSheet {
  /** @param {{onStart: () => void, onAgain: () => void}} options onAgain: send what could not be saved */
  constructor({ onStart, onAgain }) {
    this.onStart = onStart;
    this.onAgain = onAgain;
    /** Whether Enter begins a task. */
    this.begins = false;
    this.element = el("div", { class: "sheet" });
    this.showWait();
  }

  showWait() {
    this.#fill(false, el("p", { class: "quiet" }, "Loading..."));
  }

  /** @param {any} test as the server gave it @param {number} left tasks */
  showStart(test, left) {
    const begun = left < test.of;
    const done = formatCount(test.of - left, "task");
    this.#fill(Boolean(left),
      el("h2", {}, "How fast are you?"),
      el("p", {}, "Two minutes of short tasks on this project's images. Work as you always do. Autopilot then plans with your own times."),
      el("p", {}, "Only times are kept, under your name; nobody's are compared. What you mark here is not saved. Stop at any moment and go on later."),
      left ? el("div", { class: "tools" },
        keyButton(begun ? `Continue (${done} of ${test.of} done)` : "Start", "Enter", () => this.onStart(), { class: "main" }))
      : el("p", {}, test.empty),
      ...this.#known(test));
  }

  /** @param {any} test */
  showResult(test) {
    this.#fill(true, el("h2", {}, "Done. Your times:"), ...this.#known(test),
      el("div", { class: "tools" },
        el("a", { href: "autopilot" }, "Go to Autopilot"),
        keyButton("Take it again", "Enter", () => this.onStart())));
  }

  /** @param {number} count */
  showUnsent(count) {
    this.#fill(false, el("p", {}, count ? `${formatCount(count, "time")} could not be saved yet.` : "A time could not be saved."),
      el("div", { class: "tools" }, el("button", { type: "button", class: "main", onclick: () => this.onAgain() }, count ? "Try again" : "Go on")));
  }

  /** What is known of the person's times; nothing before the first. @param {any} test */
  #known({ report }) {
    const sum = Object.values(report.answers).reduce((all, /** @type {number} */ count) => all + count, 0);
    if (!sum) return [];
    /** @param {Figure} figure */
    const row = (figure) => el("tr", {}, el("th", { scope: "row" }, figure.about),
      ...[formatSeconds(figure.seconds), `${formatSeconds(figure.low)} to ${formatSeconds(figure.high)}`, formatSeconds(figure.default), figure.answers.toLocaleString("en")]
        .map((text) => el("td", {}, text)));
    return [
      el("table", {},
        el("caption", {}, `From ${formatCount(sum, "timed answer")}, ${report.tested.toLocaleString("en")} of them in this test. Averages without pauses.`),
        el("thead", {}, el("tr", {}, ...["Seconds for", "You", "95 % interval", "Default", "Answers"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, ...[...report.tasks, ...report.parts].map(row))),
      el("p", { class: "quiet" }, "Few answers leave wide intervals."),
    ];
  }

  /** @param {boolean} begins @param {HTMLElement[]} content */
  #fill(begins, ...content) {
    this.begins = begins;
    this.element.replaceChildren(...content);
  }
}

/** @param {number} seconds */
function formatSeconds(seconds) {
  return seconds.toFixed(seconds >= 10 ? 0 : seconds >= 1 ? 1 : 2);
}
