// @ts-check
/**
 * The menus on a phone are lists in Streamlit's sidebar. It puts a box between a list and its items, so that assistive
 * programs find neither: here each box becomes a group that is called like its heading, and its links are all there is.
 */

const NAVIGATION_SELECTOR = "[data-testid=stSidebarNavItems]";
const HEADING_SELECTOR = "[data-testid=stNavSectionHeader]";

/** Mend the sidebar now and whenever it is drawn anew. @returns {() => void} stops it */
export function fixSidebarRoles() {
  // What changes within our own pages is in their shadow roots, and so is not looked at.
  const observer = new MutationObserver(fixRoles);
  observer.observe(document.body, { childList: true, subtree: true });
  fixRoles();
  return () => observer.disconnect();
}

function fixRoles() {
  for (const plain of document.querySelectorAll(`${NAVIGATION_SELECTOR}, ${NAVIGATION_SELECTOR} li`)) {
    if (!plain.hasAttribute("role")) plain.setAttribute("role", "none");
  }
  for (const heading of document.querySelectorAll(`${NAVIGATION_SELECTOR} ${HEADING_SELECTOR}`)) {
    const box = heading.parentElement;
    if (!box || box.hasAttribute("role")) continue;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", heading.firstElementChild?.textContent ?? ""); // behind it is an icon
  }
}
