// @ts-check
/** Fixing an image: its address on Annotate, where it is shown with its labels, and the way back from there. */

import { keyButton } from "./dom.js";

export const FIX_KEY = "F2";
/** The row about it in the help of a page. @type {[string, string]} */
export const FIX_ROW = [FIX_KEY, "open the image in Annotate with its labels"];
/** The row about the finder of images. @type {[string, string]} */
export const FIND_ROW = ["Ctrl+P", "find an image by its file name, and open it in Annotate"];

const FIRST_PAGE_ADDRESS = "./"; // the address of the first page, whose name is in no address

/** The page that is open now, as its address within the app: "gallery?has=fox"; of the first page "" or the query alone. */
function getPageAddress() {
  const { pathname, search } = window.location;
  return pathname.slice(pathname.lastIndexOf("/") + 1) + search;
}

/** The address of an image on Annotate, which leads back to the page that is open now. @param {number} id */
function buildFixAddress(id) {
  return `annotate?${new URLSearchParams({ image: String(id), from: getPageAddress() })}`;
}

/** Leave this page for Annotate, with this image. @param {number} id */
export function openInAnnotate(id) {
  window.location.href = new URL(buildFixAddress(id), window.location.href).href;
}

/** @param {() => void} act */
export function buildFixButton(act) {
  return keyButton("Open in Annotate", FIX_KEY, act, { class: "fix" });
}

/**
 * Where the address says that somebody came from: the title and address of a page of this app; null without one.
 * @param {Record<string, [string, string]>} pages title and address by name
 */
export function findOrigin(pages) {
  const from = new URLSearchParams(window.location.search).get("from");
  if (from == null) return null;
  const [name, ...query] = from.split("?");
  const first = name ? undefined : Object.values(pages).find(([, address]) => address === FIRST_PAGE_ADDRESS);
  const page = Object.hasOwn(pages, name) ? pages[name] : first;
  return page ? { title: page[0], address: [page[1], ...query].join("?") } : null;
}
