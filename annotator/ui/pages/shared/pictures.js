// @ts-check
/** Fetching a picture until it is loaded, or known to be broken. */

const RETRY_MILLISECONDS = 1500; // milliseconds until it is asked for again while the server cannot be reached, at first
const MAX_RETRY_MILLISECONDS = 12000;
const FILE_AWAY_STATUS = 504; // status: the server answers, and the place where the file lies does not

/** A picture that is decoded before it is needed and never dragged. @param {number} id of the image @returns {HTMLImageElement} */
export function createPicture(id) {
  const picture = new Image();
  picture.decoding = "sync";
  picture.draggable = false;
  picture.alt = "";
  picture.dataset.image = String(id);
  return picture;
}

/**
 * Fetch and decode it, again and again while the server cannot be reached.
 * @param {HTMLImageElement} picture @param {string} url @param {() => boolean} [gone] nobody waits for it any more
 * @returns {Promise<string>} why it cannot be shown; "" when it is there, or nobody waits
 */
export async function loadPicture(picture, url, gone = () => false) {
  for (let pause = RETRY_MILLISECONDS; !gone(); pause = Math.min(pause * 2, MAX_RETRY_MILLISECONDS)) {
    picture.src = url;
    try {
      await picture.decode();
      return "";
    } catch {
      if (gone()) return "";
      const reason = await findReason(url);
      if (reason) return reason;
      await new Promise((resolve) => setTimeout(resolve, pause));
      picture.removeAttribute("src");
    }
  }
  return "";
}

/** Why there is no picture; "" when nobody could be asked. @param {string} url */
async function findReason(url) {
  try {
    const response = await fetch(url);
    if (response.ok) return "this browser cannot show it";
    const isKnown = response.status === FILE_AWAY_STATUS || response.status < 500;
    if (response.status === 401 || !isKnown) return "";
    return (await response.json()).error ?? `the server answered ${response.status}`;
  } catch {
    return "";
  }
}
