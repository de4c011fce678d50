// @ts-check
/** One project of the start page: backing it up, its name, archiving it, and moving it to the trash. */

import { el, formatCount } from "../shared/dom.js";

const POLL_MILLISECONDS = 300; // milliseconds between two looks at how far the backup is

const MAIN_ELEMENT = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, base: string, name: string, path: string, about: string, trash: string, backups: string,
 *         is_archived: boolean, is_served: boolean, is_team: boolean, is_oidc: boolean}} */
const PAGE_DATA = JSON.parse(MAIN_ELEMENT.dataset.page ?? "{}");

/** @typedef {{is_at_work: boolean, what: string, done: number, of: number, error: string, said: string, backups: number}} State */

/** @param {string} what @param {object} [content] @returns {Promise<any>} */
async function postStart(what, content = {}) {
  const answer = await fetch(`${PAGE_DATA.base}/start/api/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-annotator-token": PAGE_DATA.token },
    body: JSON.stringify({ project: PAGE_DATA.name, ...content }),
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
function buildForm(legend, act, button, ...parts) {
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

const openList = () => location.assign(`${PAGE_DATA.base}/`);

// Backing up

const backupBar = el("progress", { "aria-label": "Backing up", hidden: true });
const backupText = el("p", { role: "status" });

/** @param {State} state */
function showBackup({ is_at_work, what, done, of, said, backups }) {
  backupBar.hidden = !is_at_work;
  if (of) [backupBar.max, backupBar.value] = [of, done];
  else backupBar.removeAttribute("value");
  const kept = backups ? `${formatCount(backups, "backup")} there.` : "";
  backupText.textContent = is_at_work ? what || "Backing up" : [said, kept].filter(Boolean).join(" ");
}

/** Show how far the backup is until it has ended. @param {State} state */
async function followBackup(state) {
  for (; state.is_at_work; state = await postStart("backup_state")) {
    showBackup(state);
    await new Promise((go) => setTimeout(go, POLL_MILLISECONDS));
  }
  showBackup(state);
  if (state.error) throw new Error(state.error);
}

const backupForm = buildForm("Back up", async () => followBackup(await postStart("backup")), "Back up now",
  el("p", {}, `To ${PAGE_DATA.backups}. Everybody can go on working.`),
  el("p", { class: "quiet" }, "Every answer, and all that cannot be computed again. Images outside of the project are not in it."),
  el("p", { class: "quiet" }, `To another disk: annotator backup ${PAGE_DATA.path} FOLDER. Bring one back: annotator restore FOLDER PROJECT.`),
  backupBar, backupText);

// Its name

const nameField = el("input", { id: "name", dir: "auto", value: PAGE_DATA.name, maxlength: 100, autocomplete: "off", spellcheck: "false" });

async function renameProject() {
  /** @type {{link?: string}} */
  const { link } = await postStart("rename", { name: nameField.value });
  if (!link) return openList();
  MAIN_ELEMENT.replaceChildren(
    el("header", {}, el("h1", {}, `The project is called ${nameField.value.trim()}`), el("a", { href: `${PAGE_DATA.base}/` }, "All projects")),
    el("p", {}, "Whoever runs this server has to write the Caddyfile again and reload Caddy. Then open your project with this link:"),
    el("p", {}, el("a", { href: link }, link)),
    el("p", { class: "quiet" }, PAGE_DATA.is_oidc
      ? `Register ${link}oauth2callback at the login provider, too. Everybody signs in again.`
      : "The others sign in again, each with a new link from the Members page."));
}

const renameNote = PAGE_DATA.is_team
  ? "Its address changes with it: everybody signs in again, and the Caddyfile has to be written again."
  : "Addresses of its pages change with it.";
const renameForm = buildForm("Rename", renameProject, "Rename", el("label", { for: "name" }, "New name, also of its folder"), nameField,
  el("p", { class: "quiet" }, renameNote));

// Archive and trash

const archiveForm = buildForm(PAGE_DATA.is_archived ? "Archived" : "Archive", async () => {
  await postStart("archive", { archived: !PAGE_DATA.is_archived });
  openList();
}, PAGE_DATA.is_archived ? "Bring back" : "Archive",
el("p", {}, PAGE_DATA.is_archived ? "It is folded away at the end of the list." : "Folds it away at the end of the list. Nothing is deleted; one press brings it back."),
...(PAGE_DATA.is_team ? [] : [el("p", { class: "quiet" }, "An archived project does not run, and learns nothing meanwhile.")]));

const trashField = el("input", { id: "typed", dir: "auto", autocomplete: "off", spellcheck: "false" });
const trashForm = buildForm("Move to the trash", async () => {
  await postStart("trash", { typed: trashField.value });
  openList();
}, "Move to the trash",
el("p", {}, `${PAGE_DATA.about || "The whole project"} would be gone from here. Photos stay where they are.`),
el("p", { class: "quiet" }, `It is kept in ${PAGE_DATA.trash} until you delete it there; move it back to have it again.`),
el("label", { for: "typed" }, `Type the name of the project, ${PAGE_DATA.name}`), trashField);

MAIN_ELEMENT.replaceChildren(
  el("header", {}, el("h1", { dir: "auto" }, PAGE_DATA.name), el("a", { href: `${PAGE_DATA.base}/` }, "All projects")),
  el("p", { class: "quiet" }, `${PAGE_DATA.about ? `${PAGE_DATA.about}, in ` : "In "}${PAGE_DATA.path}`),
  ...(PAGE_DATA.is_served ? [backupForm] : []), renameForm, ...(PAGE_DATA.is_served ? [archiveForm] : []), trashForm);
if (PAGE_DATA.is_served) postStart("backup_state").then(followBackup).catch(() => null); // one that was begun before this page
