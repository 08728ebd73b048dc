/** Who listens to what a recipe tells. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>();

  /** Returns a function that ends it. One that is given twice is told twice, and taken back once. */
  add(listener: (event: Event) => void): () => void {
    const own = (event: Event) => listener(event);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** What a listener throws is the program's own error, and becomes an unhandled rejection; it never reaches the recipe. */
  tell(event: Event): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}
