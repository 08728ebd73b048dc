/** Those who listen to something, each told in turn. */
import { checkFunction } from './given.ts';

export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();

  /** Returns a function that ends it. The same function may listen twice. */
  add(listener: (news: News) => void): () => void {
    checkFunction(listener, 'a listener');
    const own = (news: News) => listener(news);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** What a listener throws is the program's own error, and becomes an unhandled rejection; it never reaches the recipe. */
  tell(news: News): void {
    for (const listener of this.#listeners) {
      try {
        listener(news);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}
