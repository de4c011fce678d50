// @ts-check
/**
 * Heat maps, fetched and decoded ahead: first the one that is asked for, then those wanted ahead, in order. At most two
 * requests run at a time, so that the images are not delayed.
 */

const MAX_PARALLEL_REQUESTS = 2;
const MAX_CACHED_HEATMAPS = 400;
const RETRY_MILLISECONDS = 15000; // milliseconds until a heat map that was not drawn or not fetched is asked for again
const MIN_HEATMAPS = 4; // heat maps of a class, from which on their share is said
const MAX_NOT_YET_ANSWERS = 5; // answers "not yet", each after four seconds, before a page stops waiting

/**
 * @typedef {{run_id: number, image_id: number, class_id: number}} Spot what a heat map is of
 * @typedef {{url: string, problem: string, note: string, picture: HTMLImageElement | null}} Heatmap
 *   with neither url nor problem it is on its way; a picture that is there is decoded; note: how far to trust it
 */

export class HeatmapLoader {
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
    if (isFetchable(map)) {
      this.keys.add(buildKey(spot));
      this.wanted = [spot, ...this.wanted.filter((other) => buildKey(other) !== buildKey(spot))];
      this.#work();
    }
    return map;
  }

  /** A heat map as far as it is loaded; nothing is fetched. @param {Spot} spot @returns {Heatmap | undefined} */
  known(spot) {
    return this.maps.get(buildKey(spot));
  }

  /** Fetch these ahead, in this order, and nothing else that was wanted before. @param {Spot[]} list */
  want(list) {
    this.keys = new Set(list.map(buildKey));
    this.wanted = list.filter((spot) => {
      const map = this.maps.get(buildKey(spot));
      return !map || isFetchable(map);
    });
    this.#work();
  }

  close() {
    this.closed = true;
    for (const map of this.maps.values()) if (map.url) URL.revokeObjectURL(map.url);
  }

  #work() {
    while (this.busy < MAX_PARALLEL_REQUESTS && this.wanted.length && !this.closed) {
      const spot = this.wanted.shift();
      const map = this.#entry(spot);
      if (map.busy || !isFetchable(map)) continue;
      map.busy = true;
      map.problem = "";
      this.busy += 1;
      this.#fetch(spot, map).then(() => {
        map.busy = false;
        this.busy -= 1;
        if (this.closed) return;
        if (map.url || map.problem) this.onNew(spot);
        else if (this.keys.has(buildKey(spot))) this.wanted.push(spot); // not drawn yet; meanwhile the others
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
        const notes = [describeEarly(headers.get("x-annotator-early")), this.#beside(headers.get("x-annotator-beside"))];
        map.note = notes.filter(Boolean).join(". ");
        map.picture = await decodeHeatmap(url, spot).catch(() => null);
        if (map.picture) map.url = url;
        else Object.assign(map, { problem: "this browser cannot show it", again: Infinity });
      } else if (response.status === 202) {
        map.asked += 1;
        if (map.asked < MAX_NOT_YET_ANSWERS) return;
        const again = performance.now() + RETRY_MILLISECONDS;
        Object.assign(map, { asked: 0, problem: "not drawn yet", again });
      } else {
        map.problem = (await response.json().catch(() => ({}))).error ?? `the server answered ${response.status}`;
        map.again = response.status === 410 ? Infinity : performance.now() + RETRY_MILLISECONDS;
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
    if (name) return `May show '${name}', which often stands beside it${maps >= MIN_HEATMAPS ? `. ${often}` : ""}`;
    return maps >= MIN_HEATMAPS && explained >= maps / 2 ? often : "";
  }

  /** @param {Spot} spot */
  #entry(spot) {
    const key = buildKey(spot);
    let map = this.maps.get(key);
    if (!map) {
      map = { url: "", problem: "", note: "", picture: null, asked: 0, again: 0, busy: false };
      this.maps.set(key, map);
      if (this.maps.size > MAX_CACHED_HEATMAPS) this.#drop();
    }
    return map;
  }

  #drop() {
    for (const [key, map] of [...this.maps].slice(0, MAX_CACHED_HEATMAPS / 4)) {
      // One that is on screen stays: a loaded picture needs its address no more.
      if (map.url) URL.revokeObjectURL(map.url);
      if (!map.busy) this.maps.delete(key);
    }
  }
}

/** What to say of a heat map of a run that had few examples. @param {string | null} labels how many; null: enough */
function describeEarly(labels) {
  return labels == null ? "" : `Early heat map: learned from ${labels} ${labels === "1" ? "image" : "images"} with this class`;
}

/** @param {string} url @param {Spot} spot */
async function decodeHeatmap(url, spot) {
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
function isFetchable(map) {
  return !map.url && (!map.problem || performance.now() > map.again);
}

/** @param {Spot} spot */
function buildKey(spot) {
  return `${spot.run_id}/${spot.image_id}/${spot.class_id}`;
}
