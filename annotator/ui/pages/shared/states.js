// @ts-check
/** The answers to a class on an image, as the server has them. A class without an answer has none of these. */

export const PRESENT = 1;
export const ABSENT = -1;
export const UNSURE = 0;
