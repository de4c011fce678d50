// @ts-check
/**
 * An example that is no image of the project: a picture from elsewhere, a part of an image, or words. The worker looks at
 * it (pages/gallery/like_routes.py); meanwhile the dialog waits, and then the gallery shows what is like it first.
 */

import { BASE_ADDRESS } from "../shared/api.js";
import { createPicture, loadPicture } from "../shared/pictures.js";
import { el, kbd } from "../shared/dom.js";
import { RegionField } from "./region_field.js";

const POLL_MILLISECONDS = 250; // milliseconds between two questions whether the worker has looked at it
const PATIENCE_MILLISECONDS = 3000; // milliseconds after which it is said what takes so long

/** @typedef {{id: number, name: string}} Shown an image of the project */

export class ExampleDialog {
  /**
   * @param {{session: import("../shared/session.js").Session, texts: string, onFound: (example: string) => void}} options
   *   texts    why words cannot be searched for; "" where they can
   *   onFound  told the id of an example that is ready
   */
  constructor({ session, texts, onFound }) {
    this.session = session;
    this.texts = texts;
    this.onFound = onFound;
    /** The number of the example that is waited for; it rises, so that an older one is given up. */
    this.asked = 0;
    this.#build();
  }

  #build() {
    this.words = el("input", { type: "search", id: "example-words", maxlength: "200", placeholder: "a heron in flight", autocomplete: "off", disabled: Boolean(this.texts) });
    this.search = el("button", { type: "button", class: "main", disabled: Boolean(this.texts), onclick: () => this.findWords() }, el("span", {}, "Search"), kbd("Enter"));
    this.file = el("input", { type: "file", accept: "image/*,.tif,.tiff,.dcm", hidden: true, onchange: () => this.take(this.file.files) });
    this.choose = el("button", { type: "button", onclick: () => this.file.click() }, "Choose a picture");
    this.regionField = new RegionField((box) => this.findPart(box));
    this.status = el("p", { role: "status", class: "said" });
    this.bar = el("progress", { "aria-label": "Looking at the example", hidden: true });
    this.element = el("dialog", { class: "example", "aria-labelledby": "example-title" },
      el("h2", { id: "example-title" }, "Find images"),
      el("h3", {}, el("label", { for: "example-words" }, "By words")),
      el("div", { class: "tools" }, this.words, this.search),
      el("p", { class: "quiet" }, this.texts || "Any wording, in the language of the network, mostly English."),
      el("h3", {}, "Like a picture from elsewhere"),
      el("div", { class: "tools" }, this.choose, this.file, el("span", { class: "quiet aside-button" }, "or drop it on the page. It is not added to the project.")),
      this.regionField.element,
      this.bar, this.status,
      el("div", { class: "tools" }, el("button", { type: "button", onclick: () => this.close() }, el("span", {}, "Close"), kbd("Esc"))));
    this.element.addEventListener("close", () => (this.asked += 1));
  }

  /** @param {Shown | null} image the one at the cursor, of which a part may be drawn @param {string} [words] to search for */
  open(image, words = "") {
    if (!this.element.open) this.element.showModal();
    this.say("");
    this.regionField.clear();
    if (image) this.#showImage(image);
    if (words && !this.texts) this.words.value = words;
    if (!this.texts) this.words.select();
  }

  close() {
    this.element.close();
  }

  /** Files dropped anywhere on the page. @param {HTMLElement} place */
  catchDrops(place) {
    const isFile = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
    place.addEventListener("dragover", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      place.classList.add("dropping");
    });
    place.addEventListener("dragleave", (event) => {
      if (!place.contains(/** @type {Node | null} */ (event.relatedTarget))) place.classList.remove("dropping");
    });
    place.addEventListener("drop", (event) => {
      place.classList.remove("dropping");
      if (!isFile(event)) return;
      event.preventDefault();
      this.open(null);
      this.take(event.dataTransfer?.files);
    });
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} */
  key(key, event) {
    if (key === "Escape") this.close();
    else if (key === "Enter" && event.composedPath()[0] === this.words) this.findWords();
    else return false;
    return true;
  }

  findWords() {
    const words = this.words.value.trim();
    if (words) this.#find(`"${words}"`, () => this.session.api.post("/api/like", { words }));
  }

  /** @param {[number, number, number, number]} box */
  findPart(box) {
    const { image } = this;
    if (image) this.#find(`part of ${image.name}`, () => this.session.api.post("/api/like", { image: image.id, box }));
  }

  /** @param {FileList | null | undefined} files */
  take(files) {
    const file = files?.[0];
    if (!file) return;
    if (files.length > 1) this.say(`One picture at a time: ${file.name} is looked at.`);
    this.#find(file.name, () => this.#send(file));
    this.file.value = "";
  }

  /** What an example is, in words; "" where that is not known. @param {string} example @returns {Promise<string>} */
  async describeExample(example) {
    return (await this.session.api.post("/api/like/state", { example }).catch(() => null))?.words ?? "";
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
    this.bar.hidden = true;
  }

  /** @param {Shown} image */
  async #showImage(image) {
    this.image = image;
    const picture = createPicture(image.id);
    const reason = await loadPicture(picture, this.session.api.url(`/api/image/${image.id}`), () => this.image !== image);
    if (this.image === image && !reason) this.regionField.show(picture, image.name);
  }

  /** @param {File} file @returns {Promise<{example: string}>} */
  async #send(file) {
    const response = await fetch(`${BASE_ADDRESS}/api/like/picture?name=${encodeURIComponent(file.name)}`, {
      method: "POST", headers: { "x-annotator-token": this.session.api.token }, body: file,
    }).catch(() => null);
    if (!response) throw new Error("The server cannot be reached. Choose the picture again when it is back.");
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error ?? `The server answered ${response.status}.`);
    return answer;
  }

  /** Ask, wait for the worker, and show the list. @param {string} name @param {() => Promise<{example: string}>} ask */
  async #find(name, ask) {
    const asked = (this.asked += 1);
    const gone = () => this.asked !== asked;
    this.say(`Looking at ${name}...`);
    this.bar.hidden = false;
    try {
      const { example } = await ask();
      for (const began = performance.now(); !gone(); ) {
        const { ready, error, holdup } = await this.session.api.post("/api/like/state", { example });
        if (gone()) return;
        if (error) throw new Error(error);
        if (ready) {
          this.close();
          this.onFound(example);
          this.session.showMessage(`Images like ${name} come first.`);
          return;
        }
        if (holdup && performance.now() - began > PATIENCE_MILLISECONDS) this.status.textContent = `Looking at ${name}... ${holdup}`;
        await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
      }
    } catch (error) {
      if (!gone()) this.say(/** @type {Error} */ (error).message);
    }
  }
}
