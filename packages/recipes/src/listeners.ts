/** The listeners of one source of news; each is called in turn. */
import { checkFunction } from './validation.ts';

export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();
  /** Calls that are still due, one listener each. */
  readonly #notifications: (() => void)[] = [];
  #isNotifying = false;

  /**
   * Returns a function that removes the listener. The same function may be added twice. A listener
   * that is added during a notification receives the following ones.
   */
  add(listener: (news: News) => void): () => void {
    checkFunction(listener, 'a listener');
    const ownListener = (news: News) => listener(news);
    this.#listeners.add(ownListener);
    return () => this.#listeners.delete(ownListener);
  }

  /**
   * All listeners receive all news in one order: news caused by a listener is delivered after all
   * listeners have received the current one. What a listener throws is the program's own error, and
   * becomes an unhandled rejection; it never reaches the recipe.
   */
  notify(event: News): void {
    for (const listener of this.#listeners) this.#notifications.push(() => this.#listeners.has(listener) && listener(event));
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    for (let deliver = this.#notifications.shift(); deliver !== undefined; deliver = this.#notifications.shift()) {
      try {
        deliver();
      } catch (error) {
        void Promise.reject(error);
      }
    }
    this.#isNotifying = false;
  }
}
