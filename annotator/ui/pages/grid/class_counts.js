// @ts-check
/** Counts of each class: the server's latest, updated with the person's answers since. */

const STATE_NAMES = { 1: "present", "-1": "absent", 0: "unsure" };

export class ClassCounts {
  /** @param {import("../shared/session.js").Session} session @param {() => void} onNew */
  constructor(session, onNew) {
    this.session = session;
    this.onNew = onNew;
    /** @type {Map<number, import("./class_picker.js").Counts>} */
    this.counts = new Map();
    this.asking = false;
    this.again = false;
  }

  /** @param {any[][]} cells [image, class, state, probability] @param {1 | -1} way -1: they were taken back */
  add(cells, way) {
    for (const [, id, state, probability] of cells) {
      const counts = this.counts.get(id);
      if (!counts) continue;
      counts[STATE_NAMES[state]] += way;
      counts.unknown -= way;
      if (counts.likely != null) counts.likely = Math.max(0, counts.likely - way * (probability ?? 0));
    }
  }

  /** Ask the server, once what waits has been saved. */
  async ask() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    try {
      await this.session.outbox.flush();
      const areCountsExact = this.session.outbox.beginCountReading();
      const { classes } = await this.session.api.post("/api/classes", {});
      if (areCountsExact() || !this.counts.size) {
        this.counts = new Map(classes.map((/** @type {any} */ class_) => [class_.id, class_]));
        this.onNew();
      }
    } catch {
      // The counts are not essential; the next grid asks again.
    }
    this.asking = false;
    if (!this.again) return;
    this.again = false;
    this.ask();
  }
}
