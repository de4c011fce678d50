// @ts-check
/** Fixing an image: its address on Annotate, where it is shown with its labels, and the way back from there. */

import { keyButton } from "./dom.js";

export const FIX_KEY = "F2";
/** The row about it in the help of a page. @type {[string, string]} */
export const FIX_ROW = [FIX_KEY, "open the image in Annotate with its labels"];
/** The row about the finder of images. @type {[string, string]} */
export const FIND_ROW = ["Ctrl+P", "find an image by its file name, and open it in Annotate"];

/** The page that is open now, as its address within the app: "gallery?has=fox". */
function here() {
  const { pathname, search } = window.location;
  return pathname.slice(pathname.lastIndexOf("/") + 1) + search;
}

/** The address of an image on Annotate, which leads back to the page that is open now. @param {number} id */
function fixAddress(id) {
  return `./?${new URLSearchParams({ image: String(id), from: here() })}`;
}

/** Leave this page for Annotate, with this image. @param {number} id */
export function fix(id) {
  window.location.href = new URL(fixAddress(id), window.location.href).href;
}

/** @param {() => void} act */
export function fixButton(act) {
  return keyButton("Open in Annotate", FIX_KEY, act, { class: "fix" });
}

/**
 * Where the address says that somebody came from: the title and address of a page of this app; null without one.
 * @param {Record<string, [string, string]>} pages title and address by name
 */
export function cameFrom(pages) {
  const [name, ...query] = (new URLSearchParams(window.location.search).get("from") ?? "").split("?");
  const page = Object.hasOwn(pages, name) ? pages[name] : null;
  return page && { title: page[0], address: [page[1], ...query].join("?") };
}
