/** Those who listen to something, each told in turn. */
import { checkFunction } from './given.ts';

export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();
  /** What is to be told yet, one listener at a time. */
  readonly #due: (() => void)[] = [];
  #isTelling = false;

  /** Returns a function that ends it. The same function may listen twice. Whoever comes while something is told hears of what follows. */
  add(listener: (news: News) => void): () => void {
    checkFunction(listener, 'a listener');
    const own = (news: News) => listener(news);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * All hear of everything in one order: what a listener brings about is told when all have heard of what it was told. What a listener throws is the program's own
   * error, and becomes an unhandled rejection; it never reaches the recipe.
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
