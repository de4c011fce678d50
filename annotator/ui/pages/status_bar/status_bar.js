// @ts-check
/** The project and how far it is, who is at work and what they have done today: one line at the top of every page. */

import { el, formatCount, setText } from "../shared/dom.js";
import { rememberName } from "../shared/annotator_name.js";
import { PROGRESS_EVENT } from "../shared/progress.js";
import { ConnectionNotice } from "./connection_notice.js";
import { fixSidebarRoles } from "./sidebar_roles.js";
import { TODAY_EVENT } from "../shared/daily_activity.js";

const COUNTED_TEXT =
  "What you did today: time without pauses of ten minutes, images you answered, labels you gave. What you undo does not count.";

const UNREACHABLE_TEXT = "The server does not answer. Your answers are kept here and sent later.";
const UNREACHABLE_ADVICE = "Keep this page open. If you stopped the server, start it again: annotator serve.";
const CLOCK_CHECK_MILLISECONDS = 30_000; // milliseconds between two looks at the clock: one long timer would sleep with the computer

export default class StatusBar {
  /** @param {any} component */
  constructor(component) {
    this.name = el("b", { dir: "auto", title: COUNTED_TEXT });
    this.figures = el("span", { class: "figures", title: COUNTED_TEXT });
    this.counted = component.data.today;
    /** As the script counted last. */
    this.reread = component.data.today;
    this.waiting = 0; // decisions of the page that the server has not acknowledged
    this.ahead = { milliseconds: 0, images: 0, labels: 0 };
    /** As the script read it last. */
    this.progress = "";
    const line = /** @type {HTMLElement} */ (component.parentElement.querySelector(".who"));
    const { project, role, sign_out, home } = component.data;
    const named = home
      ? el("a", { class: "project", dir: "auto", href: home, title: `${project}: open the list of projects` }, project)
      : el("span", { class: "project", dir: "auto", title: project }, project);
    this.measure = el("span", { class: "measure" });
    const button = sign_out
      ? el("a", { href: sign_out }, "Sign out")
      : el("button", { type: "button", onclick: () => this.change() }, "Switch user");
    const role_ = role ? el("span", { class: "role", title: "Your role in this project. Owners change roles." }, role) : "";
    const trouble = el("span", { class: "trouble", role: "alert", title: UNREACHABLE_ADVICE });
    line.replaceChildren(named, trouble, this.measure, this.name, role_, this.figures, button);
    this.connectionNotice = new ConnectionNotice((unreachable) => {
      line.classList.toggle("unreachable", unreachable);
      setText(trouble, unreachable ? UNREACHABLE_TEXT : "");
    });
    this.hear = (/** @type {any} */ { detail }) => {
      this.ahead = detail.ahead;
      this.waiting = detail.waiting;
      this.counted = chooseLater(this.counted, detail.counted);
      if (!this.waiting) this.counted = chooseLater(this.counted, this.reread);
      this.draw();
    };
    window.addEventListener(TODAY_EVENT, this.hear);
    this.follow = (/** @type {any} */ { detail }) => this.showProgress(detail);
    window.addEventListener(PROGRESS_EVENT, this.follow);
    /** When the server's day ends by this browser's clock, and how many seconds that was away when the server said so. */
    this.dayEnds = Infinity;
    this.dayLeft = NaN;
    this.timer = window.setInterval(() => this.followDay(), CLOCK_CHECK_MILLISECONDS);
    this.leaveSidebar = fixSidebarRoles();
    this.update(component);
  }

  /** @param {any} component */
  update({ data, setTriggerValue }) {
    rememberName(data.name_cookie, data.annotator);
    const other = this.name.textContent !== data.annotator;
    if (other) {
      this.ahead = { milliseconds: 0, images: 0, labels: 0 };
      this.waiting = 0;
      this.counted = data.today;
    }
    this.reread = data.today;
    this.change = () => setTriggerValue("change", Date.now());
    this.renew = () => setTriggerValue("midnight", Date.now());
    if (data.day_left !== this.dayLeft) this.dayEnds = Date.now() + 1000 * data.day_left; // not when it is drawn once more
    this.dayLeft = data.day_left;
    setText(this.name, data.annotator);
    // A page that counts on is ahead of what its script has read.
    if (data.progress !== this.progress) this.showProgress(data.progress);
    this.progress = data.progress;
    this.draw();
  }

  /** @param {string} words */
  showProgress(words) {
    setText(this.measure, words);
    this.measure.title = words;
  }

  /** After midnight the script runs again, which counts anew. */
  followDay() {
    if (Date.now() < this.dayEnds) return;
    this.dayEnds = Infinity;
    this.renew();
  }

  unmount() {
    clearInterval(this.timer);
    this.leaveSidebar();
    this.connectionNotice.close();
    window.removeEventListener(TODAY_EVENT, this.hear);
    window.removeEventListener(PROGRESS_EVENT, this.follow);
  }

  draw() {
    // While decisions wait, the script's count may contain them already: they would count twice.
    const counted = this.waiting ? this.counted : chooseLater(this.counted, this.reread);
    const sum = (/** @type {"milliseconds" | "images" | "labels"} */ what) => Math.max(0, counted[what] + this.ahead[what]);
    const time = formatDuration(sum("milliseconds"));
    setText(this.figures, `today ${time} · ${formatCount(sum("images"), "image")} · ${formatCount(sum("labels"), "label")}`);
  }
}

/** @typedef {import("../shared/daily_activity.js").Count} Count */

/** @param {Count} count @param {Count | null} other @returns {Count} */
function chooseLater(count, other) {
  return other && (other.midnight - count.midnight || other.newest - count.newest) >= 0 ? other : count;
}

/** @param {number} milliseconds */
function formatDuration(milliseconds) {
  const minutes = Math.floor(milliseconds / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
