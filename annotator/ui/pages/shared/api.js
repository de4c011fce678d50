// @ts-check
/** Requests to our routes; each carries the token that the page was given. */

/** The path that all addresses of this app begin with, "" or like "/annotator"; the server says it (ui/serving/index_page.py). */
export const BASE_ADDRESS = new URL(
  /** @type {any} */ (window).__streamlit?.BACKEND_BASE_URL ?? window.location.origin,
).pathname.replace(/\/$/, "");

/** The event of a request that the server did not answer; the status bar shows it. */
export const UNREACHABLE_EVENT = "annotator-unreachable";

const KEPT_ALIVE = 30_000; // characters: browsers carry at most 64 KB past the end of a page, all requests together

export class Api {
  /** @param {string} token */
  constructor(token) {
    this.token = token;
  }

  /**
   * POST JSON, get JSON. Throws ApiError, with status 0 when the server could not be reached at all.
   * @param {string} path @param {object} body @param {{keepalive?: boolean, signal?: AbortSignal}} [options]
   */
  async post(path, body, options = {}) {
    const text = JSON.stringify(body);
    let response;
    try {
      response = await fetch(BASE_ADDRESS + path, {
        method: "POST",
        headers: { "content-type": "application/json", "x-annotator-token": this.token },
        body: text,
        keepalive: Boolean(options.keepalive) && text.length < KEPT_ALIVE,
        signal: options.signal,
      });
    } catch {
      if (!options.signal?.aborted) window.dispatchEvent(new Event(UNREACHABLE_EVENT));
      throw new ApiError(0, "the server cannot be reached");
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new ApiError(response.status, answer.error ?? `the server answered ${response.status}`);
    return answer;
  }

  /** @param {string} path */
  url(path) {
    return `${BASE_ADDRESS}${path}?token=${encodeURIComponent(this.token)}`;
  }
}

export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
