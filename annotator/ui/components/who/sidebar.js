// @ts-check
/**
 * The menus on a phone are lists in Streamlit's sidebar. It puts a box between a list and its items, so that assistive
 * programs find neither: here each box becomes a group that is called like its heading, and its links are all there is.
 */

const NAVIGATION = "[data-testid=stSidebarNavItems]";
const HEADING = "[data-testid=stNavSectionHeader]";

/** Mend the sidebar now and whenever it is drawn anew. @returns {() => void} stops it */
export function mendSidebar() {
  // What changes within our own pages is in their shadow roots, and so is not looked at.
  const observer = new MutationObserver(mend);
  observer.observe(document.body, { childList: true, subtree: true });
  mend();
  return () => observer.disconnect();
}

function mend() {
  for (const plain of document.querySelectorAll(`${NAVIGATION}, ${NAVIGATION} li`)) {
    if (!plain.hasAttribute("role")) plain.setAttribute("role", "none");
  }
  for (const heading of document.querySelectorAll(`${NAVIGATION} ${HEADING}`)) {
    const box = heading.parentElement;
    if (!box || box.hasAttribute("role")) continue;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", heading.firstElementChild?.textContent ?? ""); // behind it is an icon
  }
}
