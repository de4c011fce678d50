// @ts-check
/** One project of the start page: backing it up, its name, archiving it, and moving it to the trash. */

import { counted, el } from "../shared/dom.js";

const POLL = 300; // milliseconds between two looks at how far the backup is

const MAIN = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, base: string, name: string, path: string, about: string, trash: string, backups: string,
 *         is_archived: boolean, is_served: boolean, is_team: boolean, is_oidc: boolean}} */
const PAGE = JSON.parse(MAIN.dataset.page ?? "{}");

/** @typedef {{is_at_work: boolean, what: string, done: number, of: number, error: string, said: string, backups: number}} State */

/** @param {string} what @param {object} [content] @returns {Promise<any>} */
async function ask(what, content = {}) {
  const answer = await fetch(`${PAGE.base}/start/api/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-annotator-token": PAGE.token },
    body: JSON.stringify({ project: PAGE.name, ...content }),
  }).catch(() => null);
  if (!answer) throw new Error("The server does not answer. Is it still running?");
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

/**
 * A form with one button, which does something about the project.
 * @param {string} legend @param {() => Promise<void>} act @param {string} button @param {(Node | string)[]} parts
 */
function form(legend, act, button, ...parts) {
  const problem = el("p", { class: "error", role: "alert" });
  const press = el("button", { type: "submit" }, button);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.textContent = "";
    press.disabled = true;
    await act().catch((/** @type {Error} */ error) => (problem.textContent = error.message));
    press.disabled = false;
  };
  return el("form", { novalidate: true, onsubmit: send }, el("fieldset", {}, el("legend", {}, legend), ...parts, problem, press));
}

const toList = () => location.assign(`${PAGE.base}/`);

// Backing up

const bar = el("progress", { "aria-label": "Backing up", hidden: true });
const words = el("p", { role: "status" });

/** @param {State} state */
function showBackup({ is_at_work, what, done, of, said, backups }) {
  bar.hidden = !is_at_work;
  if (of) [bar.max, bar.value] = [of, done];
  else bar.removeAttribute("value");
  const kept = backups ? `${counted(backups, "backup")} there.` : "";
  words.textContent = is_at_work ? what || "Backing up" : [said, kept].filter(Boolean).join(" ");
}

/** Show how far the backup is until it has ended. @param {State} state */
async function followBackup(state) {
  for (; state.is_at_work; state = await ask("backup_state")) {
    showBackup(state);
    await new Promise((go) => setTimeout(go, POLL));
  }
  showBackup(state);
  if (state.error) throw new Error(state.error);
}

const backUp = form("Back up", async () => followBackup(await ask("backup")), "Back up now",
  el("p", {}, `To ${PAGE.backups}. Everybody can go on working.`),
  el("p", { class: "quiet" }, "Every answer, and all that cannot be computed again. Images outside of the project are not in it."),
  el("p", { class: "quiet" }, `To another disk: annotator backup ${PAGE.path} FOLDER. Bring one back: annotator restore FOLDER PROJECT.`),
  bar, words);

// Its name

const name = el("input", { id: "name", value: PAGE.name, maxlength: 100, autocomplete: "off", spellcheck: "false" });

async function rename() {
  /** @type {{link?: string}} */
  const { link } = await ask("rename", { name: name.value });
  if (!link) return toList();
  MAIN.replaceChildren(
    el("header", {}, el("h1", {}, `The project is called ${name.value.trim()}`), el("a", { href: `${PAGE.base}/` }, "All projects")),
    el("p", {}, "Whoever runs this server has to write the Caddyfile again and reload Caddy. Then open your project with this link:"),
    el("p", {}, el("a", { href: link }, link)),
    el("p", { class: "quiet" }, PAGE.is_oidc
      ? `Register ${link}oauth2callback at the login provider, too. Everybody signs in again.`
      : "The others sign in again, each with a new link from the Members page."));
}

const about = PAGE.is_team
  ? "Its address changes with it: everybody signs in again, and the Caddyfile has to be written again."
  : "Addresses of its pages change with it.";
const renaming = form("Rename", rename, "Rename", el("label", { for: "name" }, "New name, also of its folder"), name,
  el("p", { class: "quiet" }, about));

// Archive and trash

const archive = form(PAGE.is_archived ? "Archived" : "Archive", async () => {
  await ask("archive", { archived: !PAGE.is_archived });
  toList();
}, PAGE.is_archived ? "Bring back" : "Archive",
el("p", {}, PAGE.is_archived ? "It is folded away at the end of the list." : "Folds it away at the end of the list. Nothing is deleted; one press brings it back."),
...(PAGE.is_team ? [] : [el("p", { class: "quiet" }, "An archived project does not run, and learns nothing meanwhile.")]));

const typed = el("input", { id: "typed", autocomplete: "off", spellcheck: "false" });
const trash = form("Move to the trash", async () => {
  await ask("trash", { typed: typed.value });
  toList();
}, "Move to the trash",
el("p", {}, `${PAGE.about || "The whole project"} would be gone from here. Photos stay where they are.`),
el("p", { class: "quiet" }, `It is kept in ${PAGE.trash} until you delete it there; move it back to have it again.`),
el("label", { for: "typed" }, `Type the name of the project, ${PAGE.name}`), typed);

MAIN.replaceChildren(
  el("header", {}, el("h1", {}, PAGE.name), el("a", { href: `${PAGE.base}/` }, "All projects")),
  el("p", { class: "quiet" }, `${PAGE.about ? `${PAGE.about}, in ` : "In "}${PAGE.path}`),
  ...(PAGE.is_served ? [backUp] : []), renaming, ...(PAGE.is_served ? [archive] : []), trash);
if (PAGE.is_served) ask("backup_state").then(followBackup).catch(() => null); // one that was begun before this page
