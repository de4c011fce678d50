// @ts-check
/** The finder of images: a part of a file name, and the image opens on Annotate. */

import { Chooser } from "./chooser.js";
import { capitalize, el } from "./dom.js";

const MAX_ROWS = 24;

/** @extends {Chooser<{id: number, name: string}>} */
export class ImageFinder extends Chooser {
  /** @param {import("./api.js").Api} api @param {(id: number) => void} onOpen */
  constructor(api, onOpen) {
    super({
      title: "Find an image",
      placeholder: "Part of a file name",
      search: async (text) => {
        try {
          const { images } = await api.post("/api/find", { text, count: MAX_ROWS });
          const more = images.length === MAX_ROWS ? "There may be more: type to find them." : "";
          return { rows: images, note: images.length ? more : "No matching image." };
        } catch (error) {
          return { rows: [], note: `${capitalize(error.message)}. Change a letter to try again.` };
        }
      },
      draw: ({ id, name }) => [
        el("img", { src: api.url(`/api/thumb/${id}`), alt: "", loading: "lazy", draggable: "false" }),
        el("span", { class: "name", dir: "auto" }, name),
      ],
      onTake: ({ id }) => onOpen(id),
    });
  }
}
