// @ts-check
/**
 * Heat maps, fetched and decoded ahead: first the one that is asked for, then those wanted ahead, in order. At most two
 * requests run at a time, so that the images are not delayed.
 */

const AT_ONCE = 2;
const MOST_KEPT = 400;
const ASK_AGAIN = 15000; // milliseconds until a heat map that was not drawn or not fetched is asked for again
const FEW = 4; // heat maps of a class, from which on their share is said
const PATIENCE = 5; // answers "not yet", each after four seconds, before a page stops waiting

/**
 * @typedef {{run_id: number, image_id: number, class_id: number}} Spot what a heat map is of
 * @typedef {{url: string, problem: string, note: string, picture: HTMLImageElement | null}} Heatmap
 *   with neither url nor problem it is on its way; a picture that is there is decoded; note: how far to trust it
 */

export class Heatmaps {
  /**
   * @param {import("./api.js").Api} api
   * @param {(spot: Spot) => void} onNew one more is there, or it is known why it will not come
   * @param {(id: number) => string} nameOf a class
   */
  constructor(api, onNew, nameOf) {
    this.api = api;
    this.nameOf = nameOf;
    this.onNew = onNew;
    /** @type {Map<string, Heatmap & {asked: number, again: number, busy: boolean}>} */
    this.maps = new Map();
    /** @type {Spot[]} */
    this.wanted = [];
    /** Of what is still wanted, also while it is being fetched. @type {Set<string>} */
    this.keys = new Set();
    this.busy = 0;
    this.closed = false;
  }

  /**
   * What is known of a heat map; one that is not there yet is fetched before all others.
   * @param {Spot} spot @returns {Heatmap}
   */
  get(spot) {
    const map = this.#entry(spot);
    if (isOpen(map)) {
      this.keys.add(keyOf(spot));
      this.wanted = [spot, ...this.wanted.filter((other) => keyOf(other) !== keyOf(spot))];
      this.#work();
    }
    return map;
  }

  /** A heat map as far as it is loaded; nothing is fetched. @param {Spot} spot @returns {Heatmap | undefined} */
  known(spot) {
    return this.maps.get(keyOf(spot));
  }

  /** Fetch these ahead, in this order, and nothing else that was wanted before. @param {Spot[]} list */
  want(list) {
    this.keys = new Set(list.map(keyOf));
    this.wanted = list.filter((spot) => {
      const map = this.maps.get(keyOf(spot));
      return !map || isOpen(map);
    });
    this.#work();
  }

  close() {
    this.closed = true;
    for (const map of this.maps.values()) if (map.url) URL.revokeObjectURL(map.url);
  }

  #work() {
    while (this.busy < AT_ONCE && this.wanted.length && !this.closed) {
      const spot = this.wanted.shift();
      const map = this.#entry(spot);
      if (map.busy || !isOpen(map)) continue;
      map.busy = true;
      map.problem = "";
      this.busy += 1;
      this.#fetch(spot, map).then(() => {
        map.busy = false;
        this.busy -= 1;
        if (this.closed) return;
        if (map.url || map.problem) this.onNew(spot);
        else if (this.keys.has(keyOf(spot))) this.wanted.push(spot); // not drawn yet; meanwhile the others
        this.#work();
      });
    }
  }

  /** @param {Spot} spot @param {Heatmap & {asked: number, again: number}} map */
  async #fetch(spot, map) {
    try {
      const response = await fetch(this.api.url(`/api/heatmap/${spot.run_id}/${spot.image_id}/${spot.class_id}`));
      if (response.status === 200) {
        const url = URL.createObjectURL(await response.blob());
        const { headers } = response;
        const notes = [early(headers.get("x-annotator-early")), this.#beside(headers.get("x-annotator-beside"))];
        map.note = notes.filter(Boolean).join(". ");
        map.picture = await decoded(url, spot).catch(() => null);
        if (map.picture) map.url = url;
        else Object.assign(map, { problem: "this browser cannot show it", again: Infinity });
      } else if (response.status === 202) {
        map.asked += 1;
        if (map.asked < PATIENCE) return;
        const again = performance.now() + ASK_AGAIN;
        Object.assign(map, { asked: 0, problem: "not drawn yet", again });
      } else {
        map.problem = (await response.json().catch(() => ({}))).error ?? `the server answered ${response.status}`;
        map.again = response.status === 410 ? Infinity : performance.now() + ASK_AGAIN;
      }
    } catch {
      Object.assign(map, { problem: "the server cannot be reached", again: performance.now() + 1000 });
    }
  }

  /**
   * What to say of a heat map that may show another class, or many of whose class may.
   * @param {string | null} found the other class (0: none), how many heat maps of this class are, of how many
   */
  #beside(found) {
    const [id, explained, maps] = (found ?? "0 0 0").split(" ").map(Number);
    const name = id ? this.nameOf(id) : "";
    const often = `${explained} of ${maps} heat maps of this class may show another one`;
    if (name) return `May show '${name}', which often stands beside it${maps >= FEW ? `. ${often}` : ""}`;
    return maps >= FEW && explained >= maps / 2 ? often : "";
  }

  /** @param {Spot} spot */
  #entry(spot) {
    const key = keyOf(spot);
    let map = this.maps.get(key);
    if (!map) {
      map = { url: "", problem: "", note: "", picture: null, asked: 0, again: 0, busy: false };
      this.maps.set(key, map);
      if (this.maps.size > MOST_KEPT) this.#drop();
    }
    return map;
  }

  #drop() {
    for (const [key, map] of [...this.maps].slice(0, MOST_KEPT / 4)) {
      // One that is on screen stays: a loaded picture needs its address no more.
      if (map.url) URL.revokeObjectURL(map.url);
      if (!map.busy) this.maps.delete(key);
    }
  }
}

/** What to say of a heat map of a run that had few examples. @param {string | null} labels how many; null: enough */
function early(labels) {
  return labels == null ? "" : `Early heat map: learned from ${labels} ${labels === "1" ? "image" : "images"} with this class`;
}

/** @param {string} url @param {Spot} spot */
async function decoded(url, spot) {
  const picture = new Image();
  picture.className = "heatmap";
  picture.alt = ""; // the suggestion beside it says what it is about
  picture.decoding = "sync";
  picture.draggable = false;
  picture.dataset.class = String(spot.class_id);
  picture.src = url;
  await picture.decode();
  return picture;
}

/** Whether it is worth asking for. @param {{url: string, problem: string, again: number}} map */
function isOpen(map) {
  return !map.url && (!map.problem || performance.now() > map.again);
}

/** @param {Spot} spot */
function keyOf(spot) {
  return `${spot.run_id}/${spot.image_id}/${spot.class_id}`;
}
