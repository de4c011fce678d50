// @ts-check
/**
 * Letters that were meant as a word. Whoever types the name of a class without opening the finder first presses the keys
 * of other classes. Letters that follow each other quickly and begin the name or a synonym of a class open the finder with
 * what was typed, and what they did is undone; Redo does it again, for whoever meant the keys.
 */

// Three letters of a quick typist, or four of a slow one, and the longest pause between two of them in milliseconds. People
// need 239 ms from key to key (mean of 168,000; Dhakal et al. 2018), four letters rarely spell a name by chance.
const TYPED_WORDS = [{ letters: 3, pause: 250 }, { letters: 4, pause: 400 }];
const MAX_PAUSE_MILLISECONDS = Math.max(...TYPED_WORDS.map(({ pause }) => pause));

export class WordDetector {
  /**
   * @param {{session: import("./session.js").Session, onWord: (typed: string) => void}} options
   *   onWord: opens the finder of the page with these letters; what they did is undone by then
   */
  constructor({ session, onWord }) {
    this.session = session;
    this.onWord = onWord;
    /** @type {{letter: string, at: number, undo: () => number}[]} */
    this.letters = [];
  }

  /**
   * Handle a key that is about the image, and see whether it ends a word.
   * @param {string} key @param {KeyboardEvent} event
   * @param {() => boolean} act what the key does; true when it was the page's
   * @param {() => () => void} [save] notes what the key may change without a decision; returns how to put it back
   */
  press(key, event, act, save = () => () => {}) {
    const { history } = this.session;
    if (event.repeat || !/^\p{L}$/u.test(key)) {
      if (key !== "Shift") this.letters = [];
      return act();
    }
    const last = this.letters.at(-1);
    if (last && (event.shiftKey || event.timeStamp - last.at >= MAX_PAUSE_MILLISECONDS)) this.letters = [];
    const [before, restore] = [history.at(-1), save()];
    const done = act();
    const step = history.at(-1) === before ? null : history.at(-1);
    const undo = () => {
      const known = step != null && history.at(-1) === step;
      if (known) this.session.undo();
      restore();
      return Number(known);
    };
    this.letters.push({ letter: key, at: event.timeStamp, undo });
    return this.#isWord() ? this.#openFinder() : done;
  }

  /** Whether the last letters are a typed word: where more have come, whichever began it. */
  #isWord() {
    for (let first = 0; first < this.letters.length; first += 1) {
      const some = this.letters.slice(first);
      const pause = Math.max(...some.slice(1).map(({ at }, index) => at - some[index].at));
      if (TYPED_WORDS.some((word) => some.length >= word.letters && pause < word.pause) && this.#beginsName(some)) {
        this.letters = some;
        return true;
      }
    }
    this.letters = this.letters.slice(1 - Math.max(...TYPED_WORDS.map(({ letters }) => letters)));
    return false;
  }

  /** @param {{letter: string}[]} letters */
  #beginsName(letters) {
    const typed = letters.map(({ letter }) => letter).join("");
    return this.session.classes.some(({ name, synonyms }) => [name, ...synonyms].some((one) => one.toLowerCase().startsWith(typed)));
  }

  /** @returns {true} */
  #openFinder() {
    const typed = this.letters.map(({ letter }) => letter).join("");
    const count = this.letters.reverse().reduce((sum, { undo }) => sum + undo(), 0);
    this.letters = [];
    this.onWord(typed);
    const answers = count === 1 ? "1 answer was undone; Redo gives it back" : `${count} answers were undone; Redo gives them back`;
    this.session.showMessage(`Typed “${typed}”: ${count ? answers : "nothing was answered"}.`);
    return true;
  }
}
