// @ts-check
/** Files for an import, chosen or dropped, sent to the server one after the other; the page lists those that are there. */

import { BASE_ADDRESS } from "../shared/api.js";
import { el } from "../shared/dom.js";

const UNREACHABLE_TEXT = "The server cannot be reached. Choose the file again when it is back.";

export default class Upload {
  /** @param {any} component */
  constructor(component) {
    this.data = component.data;
    /** @type {File[]} */
    this.waiting = [];
    /** @type {XMLHttpRequest | null} */
    this.request = null;
    this.input = el("input", { type: "file", multiple: true, hidden: true, onchange: () => this.take(this.input.files) });
    this.button = el("button", { type: "button", class: "main", onclick: () => this.input.click() }, "Choose files");
    this.bar = el("progress", { max: "1", value: "0", "aria-label": "Uploading" });
    this.status = el("span", { class: "status" });
    this.sending = el("div", { class: "sending", hidden: true }, this.bar, this.status,
      el("button", { type: "button", onclick: () => this.cancel() }, "Cancel upload"));
    this.problem = el("p", { class: "problem", role: "alert" });
    const place = /** @type {HTMLElement} */ (component.parentElement.querySelector(".upload"));
    const choice = el("div", { class: "choice" }, this.button, this.input, el("span", { class: "about" }, this.data.hint));
    place.replaceChildren(choice, this.sending, this.problem);
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      place.classList.toggle("over", !this.button.disabled);
    });
    place.addEventListener("dragleave", () => place.classList.remove("over"));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      place.classList.remove("over");
      if (!this.button.disabled) this.take(event.dataTransfer?.files);
    });
    this.update(component);
  }

  /** @param {any} component */
  update({ data, setTriggerValue }) {
    this.data = data;
    this.tell = () => setTriggerValue("uploaded", Date.now());
    this.draw();
  }

  unmount() {
    this.waiting = [];
    this.request?.abort();
  }

  /** @param {FileList | null | undefined} files */
  take(files) {
    this.problem.textContent = "";
    this.waiting.push(...(files ?? []));
    this.input.value = "";
    if (!this.request) this.next();
  }

  /** Send the next file; the page is told when all have arrived. */
  next() {
    const file = this.waiting.shift();
    if (file && file.size > this.data.largest) this.fail(`${file.name} ${this.data.too_large}`);
    else if (file) this.send(file);
    else this.tell();
    this.draw();
  }

  /** XMLHttpRequest, since fetch does not say how much it has sent. @param {File} file */
  send(file) {
    const request = (this.request = new XMLHttpRequest());
    request.open("POST", `${BASE_ADDRESS}/api/upload?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("x-annotator-token", this.data.token);
    this.bar.value = 0;
    this.status.textContent = file.name;
    request.upload.onprogress = ({ loaded, total }) => {
      this.bar.value = total ? loaded / total : 0;
      this.status.textContent = `${file.name}: ${Math.floor((100 * loaded) / (total || 1))} %`;
    };
    request.onload = () => {
      this.request = null;
      if (request.status === 200) this.next();
      else this.fail(readError(request));
    };
    request.onerror = () => {
      this.request = null;
      this.fail(UNREACHABLE_TEXT);
    };
    request.send(file);
  }

  cancel() {
    this.request?.abort();
    this.request = null;
    this.fail("");
    this.button.focus();
  }

  /** Send nothing more, and say why. @param {string} text */
  fail(text) {
    this.waiting = [];
    this.problem.textContent = text;
    this.tell(); // of those before it
    this.draw();
  }

  draw() {
    this.sending.hidden = !this.request;
    this.button.disabled = Boolean(this.request);
  }
}

/** @param {XMLHttpRequest} request */
function readError(request) {
  try {
    return JSON.parse(request.responseText).error;
  } catch {
    return `The server answered ${request.status}.`;
  }
}
