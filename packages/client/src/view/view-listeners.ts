/**
 * The listeners of a view for the events of the session (`on`). It observes the session only while
 * there are listeners, so that an unused view leaves nothing on the session.
 */
import type { Chroot } from '../chroot.ts';
import type { ClientEvents } from '../client-options.ts';
import type { EventDelivery } from '../session/event-delivery.ts';
import type { NodeEvent } from '../watched-event.ts';

export class ViewListeners {
  readonly #events: EventDelivery;
  readonly #chroot: Chroot;
  readonly #listeners: { readonly [Name in keyof ClientEvents]: Set<(event: ClientEvents[Name]) => void> } = {
    state: new Set(),
    event: new Set(),
    connectFailed: new Set(),
  };
  #unsubscribe: (() => void) | undefined;

  constructor(events: EventDelivery, chroot: Chroot) {
    this.#events = events;
    this.#chroot = chroot;
  }

  /** The names of the events. */
  get names(): readonly string[] {
    return Object.keys(this.#listeners);
  }

  /** Returns a function that removes the listener at once. */
  add<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void {
    const listeners: Set<typeof listener> = this.#listeners[name];
    // A separate function for each call, so that a listener added twice is called twice, and
    // removed one at a time.
    const ownListener = (event: ClientEvents[Name]) => {
      // The listener may be removed while an event is on its way.
      if (listeners.has(ownListener)) listener(event);
    };
    listeners.add(ownListener);
    this.#unsubscribe ??= this.#subscribe();
    return () => {
      listeners.delete(ownListener);
      const { state, event, connectFailed } = this.#listeners;
      if (state.size + event.size + connectFailed.size > 0) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
    };
  }

  #subscribe(): () => void {
    const events = this.#events;
    return events.observe({
      state: (event) => {
        for (const listener of this.#listeners.state) events.inOrder(() => listener(event));
      },
      event: (type, path, zxid) => {
        if (this.#listeners.event.size === 0) return;
        const event: NodeEvent = { type, state: 'SyncConnected', path: this.#chroot.strip(path), zxid };
        for (const listener of this.#listeners.event) events.inOrder(() => listener(event));
      },
      connectFailed: (failure) => {
        for (const listener of this.#listeners.connectFailed) events.inOrder(() => listener(failure));
      },
    });
  }
}
