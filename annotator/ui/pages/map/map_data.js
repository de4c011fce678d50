// @ts-check
/** The map as bytes: points, and one byte a point that says what color it has. */

import { ApiError, BASE_ADDRESS } from "../shared/api.js";

/**
 * @typedef {"stage" | "class" | "probability" | "fact"} By
 * @typedef {{by: By, class: number | null, fact: string}} ColorRequest
 * @typedef {{names?: string[], rest?: boolean, low?: string, high?: string}} Meaning
 *   of the bytes of a fact: places in the names, the last of which may be of all others; or from 0 (low) to 254 (high)
 */

export class MapData {
  /** @param {import("../shared/api.js").Api} api */
  constructor(api) {
    this.api = api;
    /** Which map the points are of; 0 for none. */
    this.stamp = 0;
    /** Images with a place, and images in all. */
    this.of = this.images = 0;
    /** @type {import("./map_canvas.js").Points} */
    this.points = { ids: new Uint32Array(0), x: new Float32Array(0), y: new Float32Array(0) };
  }

  /** Read the points. Throws ApiError. */
  async readPoints() {
    const { content } = await this.#get("/api/map");
    const [count, of, images, stamp] = new Uint32Array(content, 0, 4);
    const ids = new Uint32Array(content, 16, count);
    const places = new Uint16Array(content, 16 + 4 * count, 2 * count);
    const share = Float32Array.from(places, (value) => value / 65535);
    this.points = { ids, x: share.subarray(0, count), y: share.subarray(count) };
    [this.of, this.images, this.stamp] = [of, images, stamp];
  }

  /**
   * One byte a point, and of a fact what they mean; null when there is another map by now, to be read first. Throws ApiError.
   * @param {ColorRequest} request @returns {Promise<{bytes: Uint8Array, meaning: Meaning} | null>}
   */
  async readColors({ by, class: class_, fact }) {
    const which = new URLSearchParams({ by, ...(class_ == null ? {} : { class: String(class_) }), ...(fact ? { fact } : {}) });
    const { content, stamp } = await this.#get(`/api/map/colors?${which}`);
    const count = this.points.ids.length;
    if (stamp !== this.stamp || (by === "fact" ? content.byteLength <= count : content.byteLength !== count)) return null;
    const meaning = by === "fact" ? JSON.parse(new TextDecoder().decode(new Uint8Array(content, count))) : {};
    return { bytes: new Uint8Array(content, 0, count), meaning };
  }

  /** @param {string} path */
  async #get(path) {
    let response;
    try {
      response = await fetch(BASE_ADDRESS + path, { headers: { "x-annotator-token": this.api.token } });
    } catch {
      throw new ApiError(0, "the server cannot be reached");
    }
    if (!response.ok) {
      const answer = await response.json().catch(() => ({}));
      throw new ApiError(response.status, answer.error ?? `the server answered ${response.status}`);
    }
    return { content: await response.arrayBuffer(), stamp: Number(response.headers.get("x-annotator-map")) };
  }
}
