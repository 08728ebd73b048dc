/** Whether objects stay in memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/**
 * How many of the objects that `make` returns are still in memory without references from the test.
 */
export async function leftOf(count: number, make: () => Promise<object>): Promise<number> {
  const made: WeakRef<object>[] = [];
  for (let at = 0; at < count; at++) made.push(new WeakRef(await make()));
  const left = () => made.filter((each) => each.deref() !== undefined).length;
  // A collection takes long when other tests have filled the heap, so there are no more of them
  // than needed.
  for (let turn = 0; turn < 3 && left() > 0; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return left();
}
