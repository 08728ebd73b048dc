/** Memory that a process keeps after garbage collection. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Turns and collections after which no more memory is released. */
const rounds = 4;

/** Bytes on the heap and in buffers outside of it. */
export async function keptBytes(): Promise<number> {
  for (let round = 0; round < rounds; round++) {
    // Closed sockets and finalizers need a turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
