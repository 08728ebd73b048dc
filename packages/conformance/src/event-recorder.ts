/** The events that a watch received, in order. */
import type { NodeEvent, WatchedEvent } from '@tskeeper/client';

export class EventRecorder {
  #events: NodeEvent[] = [];
  /** States of the session, as the watch received them. */
  readonly states: string[] = [];
  #wake = (): void => undefined;

  /** The value for the option `watch`. */
  readonly watch = (event: WatchedEvent): void => {
    if (event.type === 'None') this.states.push(event.state);
    else this.#events.push(event);
    this.#wake();
  };

  /** Removes and returns the events received so far. */
  take(): NodeEvent[] {
    return this.#events.splice(0);
  }

  /** The same as text, `NodeCreated /a`, below a path. */
  takeText(root = ''): string[] {
    return this.take().map(({ type, path }) => `${type} ${path.startsWith(root) ? path.slice(root.length) : path}`);
  }

  /** Resolves when this many events have arrived. */
  async waitForCount(count: number): Promise<void> {
    while (this.#events.length < count) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
