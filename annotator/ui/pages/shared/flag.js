// @ts-check
/** A note on an image, or on several, for whoever looks at it later: a small dialog with one line of text. */

import { el, kbd } from "./dom.js";

const MAX_NOTE_CHARACTERS = 300; // characters

export class FlagDialog {
  /**
   * @param {(note: string) => void} onSave told the note; "" removes the flag
   * @param {((note: string) => void) | null} onAside told the reason to set the image aside; null: that is not offered here
   */
  constructor(onSave, onAside = null) {
    this.onSave = onSave;
    this.onAside = onAside;
    this.asideButton = el("button", { type: "button", hidden: !onAside, onclick: () => this.exclude(), title: "Out of the work, training and exports, with this note as the reason" }, "Set aside");
    this.field = el("input", { type: "text", dir: "auto", "aria-label": "Note", maxlength: MAX_NOTE_CHARACTERS, placeholder: "What should somebody look at?", autocomplete: "off" });
    this.title = el("h2", { id: "flag-title" });
    this.element = el(
      "dialog",
      { class: "flagging", "aria-labelledby": "flag-title" },
      this.title,
      this.field,
      el("p", { class: "quiet" }, onAside ? "Flags don't affect labels. Clear the note to unflag or bring back." : "Flags don't affect labels. Clear the note to unflag."),
      el("div", { class: "tools" },
        el("button", { type: "button", class: "main", onclick: () => this.save() }, "Save", kbd("Enter")),
        this.asideButton,
        el("button", { type: "button", onclick: () => this.element.close() }, "Cancel", kbd("Esc"))),
    );
  }

  /** @param {string} name of the image, or how many there are @param {string} note the one it has */
  open(name, note) {
    this.title.replaceChildren("Flag ", el("bdi", {}, name));
    this.field.value = note;
    this.element.showModal();
    this.field.select();
  }

  save() {
    this.element.close();
    this.onSave(this.field.value.trim());
  }

  /** The image leaves the work; without a reason the field asks for one. */
  exclude() {
    const note = this.field.value.trim();
    if (!note) return this.field.focus();
    this.element.close();
    this.onAside?.(note);
  }

  /** @param {string} key @param {KeyboardEvent} event @returns {boolean} false: the browser's own */
  key(key, event) {
    if (key === "Escape") this.element.close();
    else if (key === "Enter" && event.composedPath()[0] === this.field) this.save();
    else return false;
    return true;
  }
}
