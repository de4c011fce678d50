// @ts-check
/** Archived projects of the start page: one press brings one back. */

const MAIN_ELEMENT = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, base: string}} */
const PAGE_DATA = JSON.parse(MAIN_ELEMENT.dataset.page ?? "{}");
const problemLine = /** @type {HTMLElement} */ (MAIN_ELEMENT.querySelector(".archived [role=alert]"));

/** @param {HTMLButtonElement} button */
async function restoreProject(button) {
  button.disabled = true;
  problemLine.textContent = "";
  const answer = await fetch(`${PAGE_DATA.base}/start/api/archive`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-annotator-token": PAGE_DATA.token },
    body: JSON.stringify({ project: button.dataset.project, archived: false }),
  }).catch(() => null);
  if (answer?.ok) return location.reload();
  button.disabled = false;
  problemLine.textContent = answer ? (await answer.json()).error : "The server does not answer. Is it still running?";
}

for (const button of MAIN_ELEMENT.querySelectorAll("button"))
  if (button.dataset.project) button.addEventListener("click", () => restoreProject(button));
