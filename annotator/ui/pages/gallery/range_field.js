// @ts-check
/** The field of a filter with two ends: numbers from ... to below ..., or the first and the last of some days. */

import { cleanValue, formatRange, parseRange } from "./gallery_address.js";
import { el } from "../shared/dom.js";

export class RangeField {
  /**
   * @param {string} label of the filter @param {"days" | "range"} kind @param {string} unit of the numbers
   * @param {object} taking what is to happen once an end was given: attributes of the fields
   */
  constructor(label, kind, unit, taking) {
    this.kind = kind;
    const input = (/** @type {string} */ end) => (kind === "days"
      ? el("input", { type: "date", "aria-label": `${label}, ${end}`, ...taking })
      : el("input", { type: "number", step: "any", "aria-label": `${label}, ${end}${unit && `, in ${unit}`}`, placeholder: end, autocomplete: "off", ...taking }));
    /** @type {[HTMLInputElement, HTMLInputElement]} */
    this.ends = [input(kind === "days" ? "first day" : "from"), input(kind === "days" ? "last day" : "below")];
    const quiet = (/** @type {string} */ words) => el("span", { class: "quiet" }, words);
    this.element = el("span", { class: "range", role: "group", "aria-label": label }, quiet(label), this.ends[0], quiet("to"), this.ends[1], ...(unit ? [quiet(unit)] : []));
  }

  /** @param {EventTarget} field */
  holds(field) {
    return this.ends.some((end) => end === field);
  }

  /** As it stands in the address. */
  get value() {
    const [from, to] = this.ends.map((end) => end.value.trim());
    return cleanValue(this.kind, formatRange(from, to));
  }

  set value(value) {
    parseRange(value).forEach((end, at) => (this.ends[at].value = end));
  }
}
