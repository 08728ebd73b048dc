/** Signals that many wait for. */

const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal is aborted; returns a function that ends it. However many wait for one signal, it is listened to once: Node warns of a
 * leak when one has many listeners.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const own = () => callback();
  const known = waiting.get(signal);
  if (known === undefined) listen(signal, own);
  else known.add(own);
  return () => {
    waiting.get(signal)?.delete(own);
  };
}

function listen(signal: AbortSignal, first: () => void): void {
  const callbacks = new Set([first]);
  waiting.set(signal, callbacks);
  const tellAll = () => {
    for (const callback of callbacks) callback();
  };
  signal.addEventListener('abort', tellAll, { once: true });
}
