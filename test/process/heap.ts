/** What a process keeps: memory as it is when everything that could be collected has been. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** A few turns and collections, after which nothing more can be given back. */
const rounds = 4;

/** Bytes on the heap and in buffers outside of it. */
export async function keptBytes(): Promise<number> {
  for (let round = 0; round < rounds; round++) {
    // Closed sockets and finalizers need a turn of the loop.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
