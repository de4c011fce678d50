// @ts-check
/** Images that are dropped on New project, or chosen there: they are sent, and become a folder of the server. */

import { el, formatCount } from "../shared/dom.js";

const MAX_PARALLEL_REQUESTS = 3; // images that are sent at a time
const TOO_MANY_STATUS = 429; // the status where somebody has asked for more than their share: later it goes on
const PAUSE_MILLISECONDS = 1000; // milliseconds until then

/** @param {FileSystemEntry} entry @returns {Promise<File[]>} the files of a dropped folder, with its subfolders */
async function listFiles(entry) {
  if (entry.isFile) return [await new Promise((take, fail) => /** @type {FileSystemFileEntry} */ (entry).file(take, fail))];
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const files = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((take, fail) => reader.readEntries(take, fail)); // a hundred at a time
    if (!some.length) return files;
    for (const one of some) files.push(...(await listFiles(one)));
  }
}

/** @param {DataTransfer} dropped @returns {Promise<File[]>} */
async function listDroppedFiles(dropped) {
  // Both are read before anything is waited for: afterwards the browser has emptied the list.
  const items = [...dropped.items].filter((item) => item.kind === "file").map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const files = await Promise.all(items.map(({ entry, file }) => (entry ? listFiles(entry) : file ? [file] : [])));
  return files.flat();
}

/** @param {DragEvent} event text that is dragged goes where it would without this page's help */
const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;

export class ImageDrop {
  /**
   * @param {{base: string, token: string, endings: string[], photos: string}} page
   * @param {(what: string, content?: object) => Promise<any>} ask
   * @param {(folder: string) => void} use called with the folder when all images are there
   */
  constructor(page, ask, use) {
    this.page = page;
    this.ask = ask;
    this.use = use;
    this.cancelled = new AbortController();
    this.isAtWork = false;
    this.files = el("input", { id: "images", type: "file", multiple: true, accept: page.endings.join(","), class: "file", onchange: () => this.sendChosen() });
    this.bar = el("progress", { "aria-label": "Sending images", hidden: true });
    this.words = el("p", { class: "quiet", role: "status" });
    this.cancel = el("button", { type: "button", hidden: true, onclick: () => this.cancelled.abort() }, "Cancel");
    this.problem = el("p", { class: "error", role: "alert" });
    this.zone = el("div", { class: "drop" },
      el("div", { class: "row" }, el("label", { for: "images", class: "button" }, "Send images"), this.files, el("span", { class: "by-mouse" }, "or drop them, or a folder, here")),
      el("p", { class: "quiet" }, `They are copied into ${page.photos}.`),
      this.bar, this.words, this.cancel, this.problem);
    // On the whole page: beside the zone, the browser would leave the page and open the file.
    document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    document.addEventListener("drop", (event) => hasFiles(event) && this.drop(event));
  }

  sendChosen() {
    const files = [...(this.files.files ?? [])];
    this.files.value = "";
    this.send(files);
  }

  /** @param {DragEvent} event */
  async drop(event) {
    event.preventDefault();
    if (event.dataTransfer && this.zone.checkVisibility()) this.send(await listDroppedFiles(event.dataTransfer).catch(() => []));
  }

  /** @param {File[]} files */
  async send(files) {
    if (this.isAtWork) return;
    const images = files.filter(({ name }) => !name.startsWith(".") && this.page.endings.some((ending) => name.toLowerCase().endsWith(ending)));
    this.problem.textContent = images.length ? "" : "No image is among these files.";
    if (!images.length) return;
    this.isAtWork = true;
    let batch = "";
    const leave = () => this.leave(batch);
    window.addEventListener("pagehide", leave);
    this.cancelled = new AbortController();
    [this.bar.max, this.bar.value] = [images.length, 0];
    this.bar.hidden = this.cancel.hidden = false;
    this.words.textContent = `0 of ${formatCount(images.length, "image")} sent`;
    try {
      ({ batch } = await this.ask("images_begin"));
      const waiting = images.values();
      const lines = Array.from({ length: MAX_PARALLEL_REQUESTS }, () => this.sendAll(batch, waiting, images.length));
      await Promise.all(lines).catch((error) => {
        this.cancelled.abort(); // what the other lines send is of no use
        return Promise.allSettled(lines).then(() => Promise.reject(error));
      });
      const { path } = await this.ask("images_end", { batch, keep: true });
      const others = files.length - images.length;
      this.words.textContent = `${formatCount(images.length, "image")} sent${others ? `; ${formatCount(others, "other file")} left out` : ""}`;
      this.use(path);
    } catch (error) {
      await this.ask("images_end", { batch, keep: false }).catch(() => null);
      const isCancelled = /** @type {Error} */ (error).name === "AbortError";
      this.words.textContent = isCancelled ? "Cancelled. None of these images was kept." : "";
      if (!isCancelled) this.problem.textContent = `${/** @type {Error} */ (error).message} None of these images was kept.`;
    } finally {
      window.removeEventListener("pagehide", leave);
      this.bar.hidden = this.cancel.hidden = true;
      this.isAtWork = false;
    }
  }

  /** The page is left in the middle: nothing is kept. @param {string} batch */
  leave(batch) {
    fetch(`${this.page.base}/start/api/images_end`, {
      method: "POST", keepalive: true, headers: { "content-type": "application/json", "x-annotator-token": this.page.token },
      body: JSON.stringify({ batch, keep: false }),
    }).catch(() => null);
  }

  /** @param {string} batch @param {File} image */
  async sendOne(batch, image) {
    for (;;) {
      const answer = await fetch(`${this.page.base}/start/api/image?name=${encodeURIComponent(image.name)}&batch=${batch}`, {
        method: "POST", headers: { "x-annotator-token": this.page.token }, body: image, signal: this.cancelled.signal,
      }).catch((/** @type {Error} */ error) => {
        throw error.name === "AbortError" ? error : new Error("The server does not answer. Is it still running?");
      });
      if (answer.ok) return;
      if (answer.status !== TOO_MANY_STATUS) throw new Error((await answer.json()).error);
      await new Promise((go) => setTimeout(go, PAUSE_MILLISECONDS));
    }
  }

  /** Send what is waiting, one after the other. @param {string} batch @param {Iterator<File>} waiting @param {number} of */
  async sendAll(batch, waiting, of) {
    for (let next = waiting.next(); !next.done; next = waiting.next()) {
      await this.sendOne(batch, next.value);
      this.bar.value += 1;
      this.words.textContent = `${this.bar.value.toLocaleString("en")} of ${formatCount(of, "image")} sent`;
    }
  }
}
