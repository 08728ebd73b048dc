/** Those who listen to something, each told in turn. */
export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();
  /** What is to be told, and to whom: those who listened when it became so. */
  readonly #toTell: { readonly news: News; readonly listeners: readonly ((news: News) => void)[] }[] = [];
  #isTelling = false;

  /** Returns a function that ends it. The same function may listen twice. */
  add(listener: (news: News) => void): () => void {
    const own = (news: News) => listener(news);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * All hear all in the same order: what becomes so while some news are told is told behind them. What a listener throws is the program's own error, and becomes an
   * unhandled rejection; it never reaches the recipe.
   */
  tell(news: News): void {
    this.#toTell.push({ news, listeners: [...this.#listeners] });
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let next = this.#toTell.shift(); next !== undefined; next = this.#toTell.shift()) {
      for (const listener of next.listeners) if (this.#listeners.has(listener)) call(listener, next.news);
    }
    this.#isTelling = false;
  }
}

function call<News>(listener: (news: News) => void, news: News): void {
  try {
    listener(news);
  } catch (error) {
    void Promise.reject(error);
  }
}
