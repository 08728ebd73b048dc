/**
 * Adds one listener to each signal, however many calls share the signal: Node warns of a leak if a
 * signal has many listeners.
 */

interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const listenersOf = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls `callback` once when the signal fires; returns a function that cancels this. The signal
 * must not have fired yet.
 */
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
