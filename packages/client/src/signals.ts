/**
 * Adds one listener to each signal, however many calls share the signal: Node warns of a leak if a
 * signal has many listeners.
 */

interface AbortListeners {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const listenersBySignal = new WeakMap<AbortSignal, AbortListeners>();

/**
 * Calls `callback` once when the signal fires; returns a function that cancels this. The signal
 * must not have fired yet.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let known = listenersBySignal.get(signal);
  if (known === undefined) {
    const callbacks = new Set<() => void>();
    const listener = () => {
      listenersBySignal.delete(signal);
      for (const each of callbacks) each();
    };
    known = { callbacks, listener };
    listenersBySignal.set(signal, known);
    signal.addEventListener('abort', listener, { once: true });
  }
  const { callbacks, listener } = known;
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || listenersBySignal.get(signal)?.callbacks !== callbacks) return;
    listenersBySignal.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}
