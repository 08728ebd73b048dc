/** Listens to signals. However many calls share one, it is listened to once: Node warns of a leak when one has many listeners. */

interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const listenersOf = new WeakMap<AbortSignal, Listeners>();

/** Calls back once when the signal comes; returns how to take that back. For a signal that has not come yet. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let known = listenersOf.get(signal);
  if (known === undefined) {
    const callbacks = new Set<() => void>();
    const listener = () => {
      listenersOf.delete(signal);
      for (const each of callbacks) each();
    };
    known = { callbacks, listener };
    listenersOf.set(signal, known);
    signal.addEventListener('abort', listener, { once: true });
  }
  const { callbacks, listener } = known;
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || listenersOf.get(signal)?.callbacks !== callbacks) return;
    listenersOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}
