// @ts-check
/** New project: a folder of the server, what lies in it, the classes, and how people begin. One page, top to bottom. */

import { readLastName, rememberName } from "../shared/annotator_name.js";
import { el, formatCount, kbd } from "../shared/dom.js";
import { ImageDrop } from "./image_drop.js";

const TYPING_MILLISECONDS = 250; // milliseconds without a key before what was typed is looked up
const POLL_MILLISECONDS = 300; // milliseconds between two looks at how far the project is
const MAX_NAMED_CLASSES = 12; // classes that are named under the list
const DRAFT_KEY = "annotator:new project"; // in the storage of the tab

const MAIN_ELEMENT = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {{token: string, base: string, folder: string, is_team: boolean,
 *         sample: {folder: string, name: string} | null, attempt: {folder: string, name: string} | null, endings: string[], photos: string}} */
const PAGE_DATA = JSON.parse(MAIN_ELEMENT.dataset.page ?? "{}");

/**
 * @typedef {{path: string, parent: string, folders: {name: string, path: string}[], images: number, roots: string[]}} Inside
 * @typedef {{file: string, count: number, text: string}} ClassList
 * @typedef {{file: string, name: string, why: string, text: string, count: number, trouble: string}} Labels
 * @typedef {{folder: string, images: number, endings: Record<string, number>, samples: string[], said: string[],
 *            lists: ClassList[], name: string}} Look
 * @typedef {{name: string, is_at_work: boolean, done: number, of: number, seconds_left: number | null, error: string,
 *            link: string, name_cookie: string, said: string[]}} State
 */

/** @param {string} what @param {object} [content] @returns {Promise<any>} */
async function postStart(what, content = {}) {
  const answer = await fetch(`${PAGE_DATA.base}/start/api/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-annotator-token": PAGE_DATA.token },
    body: JSON.stringify(content),
  }).catch(() => null);
  if (!answer) throw new Error("The server does not answer. Nothing was made; try again.");
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

/** @param {number} seconds */
function formatTimeLeft(seconds) {
  return seconds < 90 ? formatCount(Math.max(1, Math.round(seconds)), "second") : formatCount(Math.round(seconds / 60), "minute");
}

/** @param {string} path */
const getFileName = (path) => path.split(/[\\/]/).pop() || path;

class NewProject {
  constructor() {
    this.chosen = "";
    this.begun = ""; // the folder that is shown first
    /** @type {Labels | null} */
    this.labels = null;
    /** The number of the newest request of each kind: an older answer that comes late is dropped. */
    this.newest = { folders: 0, look: 0, classes: 0, complete: 0 };
    this.timer = 0;
    this.build();
    if (PAGE_DATA.sample) this.useSample(PAGE_DATA.sample);
    else if (PAGE_DATA.attempt) this.goOn(PAGE_DATA.attempt);
    else this.walk("").then(() => this.restore());
    this.follow(true);
  }

  build() {
    this.path = el("input", { id: "path", list: "complete", autocomplete: "off", spellcheck: "false",
      placeholder: "/home/ann/photos", oninput: () => this.later(() => this.complete()),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.pathKey(event) });
    this.options = el("datalist", { id: "complete" });
    this.walker = el("div", { class: "walker", role: "group", "aria-label": "Folders of the server" });
    this.found = el("div", { class: "found", role: "status" });
    this.pathError = el("p", { class: "error", role: "alert" });
    this.imageDrop = new ImageDrop(PAGE_DATA, postStart, (folder) => this.useSent(folder));
    this.offers = el("div", { class: "offers" });
    this.text = el("textarea", { id: "classes", dir: "auto", rows: 4, spellcheck: "false", placeholder: "fox, heron, deer",
      oninput: () => this.later(() => this.preview()), onkeydown: (/** @type {KeyboardEvent} */ event) => this.classesKey(event) });
    this.file = el("input", { id: "file", type: "file", accept: ".txt,.csv,.tsv,text/plain", class: "file", onchange: () => this.fromFile() });
    this.commas = el("input", { id: "commas", type: "checkbox", onchange: () => this.preview() });
    this.commasRow = el("label", { class: "check", hidden: true }, this.commas, " Commas are part of the names");
    this.bring = el("input", { id: "bring", type: "checkbox", checked: true });
    this.bringWords = el("span");
    this.bringRow = el("label", { class: "check", hidden: true }, this.bring, this.bringWords);
    this.names = el("p", { class: "quiet", role: "status" });
    this.one = el("input", { type: "radio", name: "mode", value: "one", checked: true });
    this.all = el("input", { type: "radio", name: "mode", value: "all" });
    this.name = el("input", { id: "name", dir: "auto", autocomplete: "off", spellcheck: "false", maxlength: 100, required: true });
    this.person = el("input", { id: "person", dir: "auto", autocomplete: "name", maxlength: 60, value: readLastName() });
    this.error = el("p", { class: "error", role: "alert", tabindex: -1 });
    this.create = el("button", { class: "main", type: "submit", "aria-keyshortcuts": "Control+Enter" }, el("span", {}, "Create project"), kbd("Ctrl+Enter"));
    this.rest = el("div", { class: "rest", hidden: true },
      el("fieldset", {}, el("legend", {}, "Classes"),
        el("div", { class: "offers" }, this.offers, el("label", { for: "file", class: "button" }, "From a file"), this.file),
        el("label", { for: "classes" }, "One a line, or with commas between them"), this.text,
        this.commasRow, this.names, this.bringRow),
      el("fieldset", {}, el("legend", {}, "Labels of an image"),
        el("label", { class: "check" }, this.one, el("span", {}, el("b", {}, "One"), ", then the next image: the model asks for the rest")),
        el("label", { class: "check" }, this.all, el("span", {}, el("b", {}, "All"), " you see, then Enter for the next image"))),
      el("fieldset", { class: "names" }, el("legend", {}, "Name"),
        el("label", { for: "name" }, "Project", this.name),
        ...(PAGE_DATA.is_team ? [] : [el("label", { for: "person" }, "You, as stored with your answers", this.person)]),
        el("p", { class: "quiet" }, `It is made in ${PAGE_DATA.folder}; photos stay where they are.`)),
      el("div", { class: "row create" }, this.error, this.create));
    this.form = el("form", { novalidate: true, onsubmit: (/** @type {Event} */ event) => this.make(event) },
      el("fieldset", {}, el("legend", {}, "Images"),
        el("label", { for: "path" }, "A folder on the machine that runs Annotator"),
        el("div", { class: "row path" }, this.path, this.options, el("button", { type: "button", onclick: () => this.choose(this.path.value) }, "Use this folder")),
        this.walker, ...(PAGE_DATA.photos ? [this.imageDrop.zone] : []), this.pathError, this.found),
      this.rest);
    this.bar = el("progress", { "aria-label": "Making the project" });
    this.words = el("p", { role: "status" });
    this.cancel = el("button", { type: "button", onclick: () => this.stop() }, "Cancel");
    this.work = el("section", { class: "work", hidden: true }, el("h2", {}, "Making the project"), this.bar, this.words, this.cancel);
    this.done = el("section", { hidden: true });
    MAIN_ELEMENT.replaceChildren(
      el("header", {}, el("h1", {}, "New project"), el("a", { href: `${PAGE_DATA.base}/` }, "All projects")),
      ...(PAGE_DATA.sample ? [el("p", {}, "Drawn sample images, to try it with. Everything is filled in: press Create project.")] : []),
      ...(PAGE_DATA.attempt ? [this.unfinished(PAGE_DATA.attempt.name)] : []),
      this.form, this.work, this.done);
    this.path.focus();
  }

  /** @param {() => void} act */
  later(act) {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(act, TYPING_MILLISECONDS);
  }

  // Images

  /** List the folders of a folder. @param {string} path "": the first root */
  async walk(path) {
    const number = ++this.newest.folders;
    try {
      /** @type {Inside} */
      const inside = await postStart("folders", { path });
      if (number !== this.newest.folders) return;
      this.showFolders(inside);
      this.path.value = inside.path;
      this.begun ||= inside.path;
      this.pathError.textContent = "";
      if (path && inside.images) await this.look(inside.path);
    } catch (error) {
      if (number === this.newest.folders) this.pathError.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  /** @param {Inside} inside */
  showFolders({ path, parent, folders, images, roots }) {
    const had = this.walker.contains(document.activeElement);
    const button = (/** @type {string} */ name, /** @type {string} */ to) =>
      el("button", { type: "button", class: "folder", title: to, dir: "auto", onclick: () => this.walk(to) }, name);
    const up = parent ? [el("button", { type: "button", class: "folder up", onclick: () => this.walk(parent) }, `Up to ${getFileName(parent)}`)] : [];
    const others = roots.filter((root) => root !== path && !path.startsWith(`${root}/`)).map((root) => button(root, root));
    const here = images ? `${formatCount(images, "image")} in ${getFileName(path)}` : `No images directly in ${getFileName(path)}`;
    this.walker.replaceChildren(el("p", { class: "quiet" }, here), el("div", { class: "folders" }, ...up, ...others, ...folders.map((one) => button(one.name, one.path))));
    if (had) /** @type {HTMLElement | null} */ (this.walker.querySelector("button"))?.focus();
  }

  /** Folders that go on with what was typed. */
  async complete() {
    const typed = this.path.value;
    const cut = Math.max(typed.lastIndexOf("/"), typed.lastIndexOf("\\"));
    if (cut < 0) return;
    const number = ++this.newest.complete;
    /** @type {Inside | null} */
    const inside = await postStart("folders", { path: typed.slice(0, cut) || "/" }).catch(() => null);
    if (!inside || number !== this.newest.complete) return;
    const start = typed.slice(cut + 1).toLowerCase();
    const fits = inside.folders.filter((one) => one.name.toLowerCase().startsWith(start));
    this.options.replaceChildren(...fits.slice(0, 50).map((one) => el("option", { value: one.path })));
  }

  /** @param {KeyboardEvent} event */
  pathKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.choose(this.path.value, true);
  }

  /** @param {string} path @param {boolean} [byKey] the next field is focused */
  async choose(path, byKey = false) {
    if (!(await this.look(path))) return;
    ++this.newest.folders;
    const inside = await postStart("folders", { path }).catch(() => null);
    if (inside) this.showFolders(inside);
    if (byKey) this.text.focus();
  }

  /** Go on with images that were sent. @param {string} folder */
  useSent(folder) {
    this.path.value = folder;
    return this.choose(folder, true);
  }

  /** Fill everything in, so that only "Create" is left to press. @param {{folder: string, name: string}} sample */
  async useSample({ folder, name }) {
    this.path.value = folder;
    await this.choose(folder);
    if (!this.chosen) return;
    /** @type {HTMLButtonElement | null} */ (this.offers.querySelector("button"))?.click();
    this.name.value = name;
    this.create.focus({ preventScroll: true }); // what this page is stays in view
  }

  // What was begun before

  /** @param {string} name of a project that was begun and not finished */
  unfinished(name) {
    const problem = el("p", { class: "error", role: "alert" });
    const remove = () => postStart("remove_unfinished", { name }).then(
      () => location.assign(`${PAGE_DATA.base}/`), (/** @type {Error} */ error) => (problem.textContent = error.message));
    return el("p", {}, `${name} was begun and not finished. Give its classes, and create it: images that were read are not read again. `,
      el("button", { type: "button", onclick: remove }, `Remove ${name} instead`), problem);
  }

  /** @param {{folder: string, name: string}} attempt */
  async goOn({ folder, name }) {
    this.path.value = folder;
    await this.choose(folder); // without the focus: what is said at the top stays in view
    this.fill(readDraft().classes);
    this.name.value = name;
  }

  /** Fill in what was there before a reload, or before the server was started again. */
  async restore() {
    const { path, classes } = readDraft();
    if (!path || this.path.value !== this.begun) return; // the person is on their way
    this.path.value = path;
    await this.choose(path);
    if (this.chosen === path) this.fill(classes);
  }

  /** @param {string} classes one a line */
  fill(classes) {
    if (classes && !this.text.value) this.use(classes, null);
  }

  /** Keep what was filled in, until the project is made. */
  keep() {
    sessionStorage.setItem(DRAFT_KEY, JSON.stringify({ path: this.chosen, classes: this.text.value }));
  }

  /** Say what lies in a folder. @param {string} path */
  async look(path) {
    const number = ++this.newest.look;
    this.pathError.textContent = "";
    this.found.replaceChildren(el("p", { class: "quiet" }, `Looking through ${path}...`));
    try {
      /** @type {Look} */
      const found = await postStart("look", { path });
      if (number !== this.newest.look) return false;
      this.chosen = found.folder;
      this.showFound(found);
      this.keep();
      this.findLabels(found.folder, number);
      return true;
    } catch (error) {
      if (number !== this.newest.look) return false;
      this.chosen = "";
      this.rest.hidden = true;
      this.found.replaceChildren();
      this.pathError.textContent = String(/** @type {Error} */ (error).message);
      return false;
    }
  }

  /** @param {Look} found */
  showFound(found) {
    const formats = Object.entries(found.endings).map(([ending, count]) => `${count.toLocaleString("en")} ${ending.replace(/^\./, "")}`);
    const pictures = found.samples.map((path) =>
      el("img", { alt: getFileName(path), title: getFileName(path), width: 96, height: 72, loading: "lazy", src: `${PAGE_DATA.base}/start/thumb?path=${encodeURIComponent(path)}` }));
    this.found.replaceChildren(
      el("p", {}, el("b", {}, formatCount(found.images, "image")), ` with subfolders: ${formats.join(", ")}`),
      el("div", { class: "thumbs" }, ...pictures),
      ...found.said.map((sentence) => el("p", { class: "quiet" }, sentence)));
    this.name.value = found.name;
    this.labels = null;
    this.bringRow.hidden = true;
    const offers = found.lists.map((list) =>
      el("button", { type: "button", onclick: () => this.use(list.text, null) }, `Use the ${formatCount(list.count, "class", "classes")} of ${getFileName(list.file)}`));
    this.offers.replaceChildren(...offers);
    this.rest.hidden = false;
  }

  /** Offer the labels that lie in a folder; in a large one it takes a while to find them. @param {string} path @param {number} number */
  async findLabels(path, number) {
    const looking = el("p", { class: "quiet", role: "status" }, "Looking for labels in the folder...");
    this.offers.append(looking);
    /** @type {Labels | null} */
    const labels = (await postStart("labels", { path }).catch(() => null))?.labels ?? null;
    looking.remove();
    if (number !== this.newest.look || !labels) return;
    this.labels = labels;
    if (labels.trouble) this.offers.append(el("p", { class: "quiet" }, `Labels were found, and cannot come with the project now. ${labels.trouble}`));
    else if (labels.count)
      this.offers.append(el("button", { type: "button", onclick: () => this.use(labels.text, labels) },
        `Use the ${formatCount(labels.count, "class", "classes")} and labels of ${labels.name}`));
  }

  // Classes

  /** @param {string} text @param {Labels | null} labels */
  use(text, labels) {
    this.text.value = text;
    this.bringRow.hidden = !labels;
    if (labels) this.bringWords.textContent = `Bring the labels of ${labels.name} too`;
    this.preview();
  }

  async fromFile() {
    const file = this.file.files?.[0];
    if (file) this.use(await file.text(), null);
  }

  get typed() {
    const lines = this.text.value.split(/\r\n|\r|\n/).filter((line) => line.trim());
    return { text: lines.join("\n"), commas: this.commas.checked ? "keep" : "split" };
  }

  /** Enter begins a new line there. @param {KeyboardEvent} event */
  classesKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
    event.preventDefault();
    this.form.requestSubmit(this.create);
  }

  async preview() {
    const number = ++this.newest.classes;
    this.keep();
    try {
      const { names, has_commas } = await postStart("classes", this.typed);
      if (number !== this.newest.classes) return;
      this.commasRow.hidden = !has_commas || !names.length || !/[,;，、；]/.test(this.text.value);
      const shown = names.slice(0, MAX_NAMED_CLASSES).flatMap((/** @type {string} */ name, /** @type {number} */ at) => [at ? " · " : "", el("bdi", {}, name)]);
      const more = names.length > MAX_NAMED_CLASSES ? " · ..." : "";
      this.names.replaceChildren(...(names.length ? [`${formatCount(names.length, "class", "classes")}: `, ...shown, more] : []));
      this.names.classList.remove("error");
    } catch (error) {
      if (number !== this.newest.classes) return;
      this.names.textContent = String(/** @type {Error} */ (error).message);
      this.names.classList.add("error");
    }
  }

  // Making it

  /** @param {Event} event */
  async make(event) {
    event.preventDefault();
    this.error.textContent = "";
    if (!this.chosen) return;
    this.create.disabled = true;
    const labels = !this.bringRow.hidden && this.bring.checked ? (this.labels?.file ?? "") : "";
    const mode = this.all.checked ? "all" : "one";
    try {
      await postStart("make", { ...this.typed, name: this.name.value, path: this.chosen, labels, mode });
      await this.follow();
    } catch (error) {
      this.showError(/** @type {Error} */ (error).message);
    } finally {
      this.create.disabled = false;
    }
  }

  /** Why the project was not made, at the button that makes it. @param {string} words */
  showError(words) {
    this.error.textContent = words;
    this.error.focus();
  }

  /** Show how far the project is until it is made. @param {boolean} [atStart] an earlier one is of no interest */
  async follow(atStart = false) {
    for (let lost = 0; ; ) {
      /** @type {State | null} */
      const state = await postStart("state").catch(() => null);
      lost = state ? 0 : lost + 1;
      if (atStart && !state?.is_at_work) return;
      if (state && !state.is_at_work) return this.ended(state);
      atStart = false;
      this.form.hidden = true;
      this.work.hidden = false;
      if (state) this.showWork(state);
      else if (lost > 3) this.words.textContent = "The server does not answer. Is it still running?";
      await new Promise((go) => setTimeout(go, POLL_MILLISECONDS));
    }
  }

  /** @param {State} state */
  showWork({ name, done, of, seconds_left }) {
    if (of) [this.bar.max, this.bar.value] = [of, done];
    const left = seconds_left == null ? "" : ` · about ${formatTimeLeft(seconds_left)} left`;
    this.words.textContent = of ? `${name}: ${done.toLocaleString("en")} of ${formatCount(of, "file")} read${left}` : `${name}: listing files`;
  }

  async stop() {
    this.cancel.disabled = true;
    await postStart("cancel").catch(() => null);
  }

  /** @param {State} state */
  ended({ name, error, link, name_cookie }) {
    this.work.hidden = true;
    this.cancel.disabled = false;
    if (error) {
      this.form.hidden = false;
      this.showError(error);
      return;
    }
    sessionStorage.removeItem(DRAFT_KEY);
    if (!link) location.assign(`${PAGE_DATA.base}/`); // somebody else makes a project by now: the list has this one
    else if (PAGE_DATA.is_team) {
      this.done.hidden = false;
      this.done.replaceChildren(
        el("h2", {}, `${name} is made`),
        el("p", {}, "Rewrite the Caddyfile on the server and reload Caddy. Then open this link:"),
        el("p", {}, el("a", { href: link }, link)));
    } else {
      const person = this.person.value.trim();
      if (person) rememberName(name_cookie, person);
      location.assign(link);
    }
  }
}

/** What this tab has kept of a project that was not made yet. @returns {{path: string, classes: string}} */
function readDraft() {
  const kept = JSON.parse(sessionStorage.getItem(DRAFT_KEY) ?? "{}");
  return { path: kept.path ?? "", classes: kept.classes ?? "" };
}

new NewProject();
