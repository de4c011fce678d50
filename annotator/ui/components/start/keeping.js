// @ts-check
/** One project of the start page: its name, and moving it to the trash. */

import { el } from "../shared/dom.js";

const MAIN = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, name: string, path: string, about: string, trash: string}} */
const PAGE = JSON.parse(MAIN.dataset.page ?? "{}");

/**
 * A form whose submission goes to the server and then back to the list of projects.
 * @param {string} legend @param {string} what @param {() => object} content @param {string} button @param {(Node | string)[]} parts
 */
function form(legend, what, content, button, ...parts) {
  const problem = el("p", { class: "error", role: "alert" });
  const press = el("button", { type: "submit" }, button);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.textContent = "";
    press.disabled = true;
    const answer = await fetch(`/start/api/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-annotator-token": PAGE.token },
      body: JSON.stringify({ project: PAGE.name, ...content() }),
    }).catch(() => null);
    if (answer?.ok) return location.assign("/");
    press.disabled = false;
    problem.textContent = answer ? (await answer.json()).error : "The server does not answer. Is it still running?";
  };
  return el("form", { novalidate: true, onsubmit: send }, el("fieldset", {}, el("legend", {}, legend), ...parts, problem, press));
}

const name = el("input", { id: "name", value: PAGE.name, maxlength: 100, autocomplete: "off", spellcheck: "false" });
const typed = el("input", { id: "typed", autocomplete: "off", spellcheck: "false" });
MAIN.replaceChildren(
  el("header", {}, el("h1", {}, PAGE.name), el("a", { href: "/" }, "All projects")),
  el("p", { class: "quiet" }, `${PAGE.about ? `${PAGE.about}, in ` : "In "}${PAGE.path}`),
  form("Rename", "rename", () => ({ name: name.value }), "Rename", el("label", { for: "name" }, "New name, also of its folder"), name,
    el("p", { class: "quiet" }, "Addresses of its pages change with it.")),
  form("Move to the trash", "trash", () => ({ typed: typed.value }), "Move to the trash",
    el("p", {}, `${PAGE.about || "The whole project"} would be gone from here. Photos stay where they are.`),
    el("p", { class: "quiet" }, `It is kept in ${PAGE.trash} until you delete it there; move it back to have it again.`),
    el("label", { for: "typed" }, `Type the name of the project, ${PAGE.name}`), typed));
