/**
 * Data at paths that have no znode: how a client learns which operations of this server ZooKeeper
 * does not have. A request with an opcode that a server does not know costs the connection
 * (docs/decisions/unknown-opcodes.md), while a getData of a path without a znode costs nothing, and
 * every server answers it.
 *
 * They are not in the tree, its digest or its snapshots, nor among children. A znode of the
 * same path, if a client has created one, hides them.
 */
import { featuresPath, keeperApiVersion, keeperFeatureFlags, keeperPath, serverFeature, statBytes } from '@tskeeper/protocol';
import { putInt32 } from '../tree/bytes.ts';

/** Where the length of the data is in a Stat. */
const dataLengthAt = 52;

export class VirtualZnodes {
  readonly #replies = new Map<string, Buffer>();
  readonly #pathBytesMax: number;

  /**
   * `keeperExtensions`: which operations of ClickHouse Keeper this server has: those of which the
   * leader knows nothing, or all.
   */
  constructor(keeperExtensions: 'none' | 'reads' | 'all') {
    this.#add(featuresPath, Buffer.from(Object.values(serverFeature).join('\n')));
    if (keeperExtensions !== 'none') {
      this.#add(keeperPath.apiVersion, Buffer.from(String(keeperApiVersion)));
      this.#add(keeperPath.featureFlags, keeperFeatureFlags(keeperExtensions === 'all'));
    }
    this.#pathBytesMax = Math.max(...[...this.#replies.keys()].map((path) => path.length));
  }

  #add(path: string, data: Buffer): void {
    const reply = Buffer.alloc(4 + data.length + statBytes);
    putInt32(reply, 0, data.length);
    data.copy(reply, 4);
    putInt32(reply, 4 + data.length + dataLengthAt, data.length);
    this.#replies.set(path, reply);
  }

  /** The body of the reply to getData, in wire form; undefined for any other path. */
  replyTo(path: Buffer, start: number, end: number): Buffer | undefined {
    return end - start > this.#pathBytesMax ? undefined : this.#replies.get(path.toString('latin1', start, end));
  }
}
