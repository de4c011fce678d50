// @ts-check
/** Archived projects of the start page: one press brings one back. */

const MAIN = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, base: string}} */
const PAGE = JSON.parse(MAIN.dataset.page ?? "{}");
const problem = /** @type {HTMLElement} */ (MAIN.querySelector(".archived [role=alert]"));

/** @param {HTMLButtonElement} button */
async function bringBack(button) {
  button.disabled = true;
  problem.textContent = "";
  const answer = await fetch(`${PAGE.base}/start/api/archive`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-annotator-token": PAGE.token },
    body: JSON.stringify({ project: button.dataset.project, archived: false }),
  }).catch(() => null);
  if (answer?.ok) return location.reload();
  button.disabled = false;
  problem.textContent = answer ? (await answer.json()).error : "The server does not answer. Is it still running?";
}

for (const button of MAIN.querySelectorAll("button"))
  if (button.dataset.project) button.addEventListener("click", () => bringBack(button));
