// @ts-check
/**
 * Thumbnails: a few are loaded at a time, those in sight first, and what is not wanted any more is given up. So a page
 * that is scrolled far asks for no picture that nobody sees, and a decision never waits behind pictures.
 */

import { createPicture, loadPicture } from "../shared/pictures.js";

const MAX_PARALLEL_REQUESTS = 4; // of the six connections that a browser opens
const MAX_CACHED_PICTURES = 300; // decoded pictures

export class ThumbnailLoader {
  /** @param {(path: string) => string} url @param {(id: number) => void} onLoaded an image has its picture, or a reason why not */
  constructor(url, onLoaded) {
    this.url = url;
    this.onLoaded = onLoaded;
    /** Those loaded, used last at the end. @type {Map<number, HTMLImageElement>} */
    this.loaded = new Map();
    /** Why an image cannot be shown. @type {Map<number, string>} */
    this.broken = new Map();
    /** @type {Map<number, HTMLImageElement>} */
    this.loading = new Map();
    /** Ids of images in sight, in the order in which they are wanted. @type {number[]} */
    this.wanted = [];
  }

  /** @param {number} id @returns {HTMLImageElement | null} */
  get(id) {
    const picture = this.loaded.get(id);
    if (!picture) return null;
    this.loaded.delete(id);
    this.loaded.set(id, picture);
    return picture;
  }

  /** These and no others. @param {number[]} ids */
  want(ids) {
    this.wanted = ids;
    const wanted = new Set(ids);
    for (const [id, picture] of this.loading) {
      if (wanted.has(id)) continue;
      this.loading.delete(id);
      picture.removeAttribute("src");
    }
    for (const id of this.loaded.keys()) {
      if (this.loaded.size <= MAX_CACHED_PICTURES) break;
      if (!wanted.has(id)) this.loaded.delete(id);
    }
    this.#load();
  }

  #load() {
    for (const id of this.wanted) {
      if (this.loading.size >= MAX_PARALLEL_REQUESTS) return;
      if (!this.loaded.has(id) && !this.loading.has(id) && !this.broken.has(id)) this.#begin(id);
    }
  }

  /** @param {number} id */
  async #begin(id) {
    const picture = createPicture(id);
    this.loading.set(id, picture);
    const gone = () => this.loading.get(id) !== picture;
    const reason = await loadPicture(picture, this.url(`/api/thumb/${id}`), gone);
    if (gone()) return;
    this.loading.delete(id);
    if (reason) this.broken.set(id, reason);
    else this.loaded.set(id, picture);
    this.onLoaded(id);
    this.#load();
  }
}
