/** Combines two observers of a core: the server's own bookkeeping, and the one of the hooks. */
import { type Observer, silentObserver } from '@tskeeper/core';

type Call = (...values: readonly unknown[]) => void;

/** Passes every call to `first`, and then to `second`. */
export function combineObservers(first: Observer, second: Observer): Observer {
  const both: Record<string, Call> = {};
  for (const name of Object.keys(silentObserver) as (keyof Observer)[]) {
    const [one, other] = [first[name].bind(first) as Call, second[name].bind(second) as Call];
    both[name] = (...values) => {
      one(...values);
      other(...values);
    };
  }
  return both as unknown as Observer;
}
