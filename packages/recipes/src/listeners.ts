/** The listeners of one source of news; each is called in turn. */
import { checkFunction } from './given.ts';

export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();
  /** Calls that are still due, one listener each. */
  readonly #due: (() => void)[] = [];
  #isTelling = false;

  /**
   * Returns a function that removes the listener. The same function may be added twice. A listener
   * that is added during a notification receives the following ones.
   */
  add(listener: (news: News) => void): () => void {
    checkFunction(listener, 'a listener');
    const own = (news: News) => listener(news);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * All listeners receive all news in one order: news caused by a listener is delivered after all
   * listeners have received the current one. What a listener throws is the program's own error, and
   * becomes an unhandled rejection; it never reaches the recipe.
   */
  tell(news: News): void {
    for (const listener of this.#listeners) this.#due.push(() => this.#listeners.has(listener) && listener(news));
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let tell = this.#due.shift(); tell !== undefined; tell = this.#due.shift()) {
      try {
        tell();
      } catch (error) {
        void Promise.reject(error);
      }
    }
    this.#isTelling = false;
  }
}
