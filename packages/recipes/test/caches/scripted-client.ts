/**
 * A client whose loop yields what the test says, and whose reads are answered when and as the test
 * says: for orders that occur too rarely by chance.
 */
import { type ClientView, KeeperError, type SessionEvent, type Stat, type WatchLoopEvent } from '@tskeeper/client';
import { ErrorCode } from '@tskeeper/protocol';
import { ManualClock } from '@tskeeper/runtime';

export interface ScriptedStat {
  readonly czxid: number;
  /** Default: as created. */
  readonly mzxid?: number;
  readonly numChildren?: number;
}

function statOf({ czxid, mzxid = czxid, numChildren = 0 }: ScriptedStat): Stat {
  const none = { ctime: 0, mtime: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n, dataLength: 0 };
  return { ...none, czxid: BigInt(czxid), mzxid: BigInt(mzxid), pzxid: BigInt(mzxid), version: 0, numChildren };
}

function refusal(call: string, path: string, errno: number): KeeperError {
  return new KeeperError(call, path, {
    errno,
    outcome: 'refused',
    reason: undefined,
    cause: undefined,
    failedIndex: undefined,
    results: undefined,
  });
}

interface Read {
  readonly call: string;
  readonly path: string;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class ScriptedClient {
  readonly clock = new ManualClock(0);
  readonly #reads: Read[] = [];
  readonly #events: WatchLoopEvent[] = [];
  readonly #stateListeners = new Set<(event: SessionEvent) => void>();
  #wake = () => {};
  #isLeft = false;

  /** As the caches see it. */
  get view(): ClientView {
    return this as unknown as ClientView;
  }

  /** `getData /a`: the reads that wait for a reply. */
  get reads(): readonly string[] {
    return this.#reads.map(({ call, path }) => `${call} ${path}`);
  }

  /** How many listeners the state of the session has. */
  get listeners(): number {
    return this.#stateListeners.size;
  }

  async disconnect(): Promise<void> {
    const event: SessionEvent = { type: 'None', state: 'Disconnected', path: null, zxid: undefined, reason: undefined };
    for (const listener of this.#stateListeners) listener(event);
    for (const read of this.reads) await this.refuse(read, ErrorCode.ConnectionLoss);
  }

  async tell(...events: readonly WatchLoopEvent[]): Promise<void> {
    this.#events.push(...events);
    this.#wake();
    await settled();
  }

  reread(cause: 'started' | 'reconnected' | 'overflowed' = 'started'): Promise<void> {
    return this.tell({ type: 'Reread', cause, since: undefined, dropped: 0 });
  }

  changed(type: 'NodeCreated' | 'NodeDeleted' | 'NodeDataChanged', path: string, zxid?: number): WatchLoopEvent {
    return { type, path, zxid: zxid === undefined ? undefined : BigInt(zxid) };
  }

  /**
   * Answers the oldest read, which must be this one, with `children` or the data's Stat; null: the
   * znode does not exist.
   */
  async answer(read: string, stat: ScriptedStat | null, children: readonly string[] = []): Promise<void> {
    const { call, path, resolve, reject } = this.#next(read);
    if (stat !== null) {
      resolve(
        call === 'exists' ? statOf(stat) : call === 'getData' ? { data: null, stat: statOf(stat) } : { children, stat: statOf(stat) },
      );
    } else if (call === 'exists') {
      resolve(null);
    } else {
      reject(refusal(call, path, ErrorCode.NoNode));
    }
    await settled();
  }

  async refuse(read: string, errno: number): Promise<void> {
    const { call, path, reject } = this.#next(read);
    reject(refusal(call, path, errno));
    await settled();
  }

  #next(read: string): Read {
    if (this.reads[0] !== read) throw new Error(`${read} is not what waits for an answer, but ${this.reads.join(', ') || 'nothing'}`);
    return this.#reads.shift()!;
  }

  // --- What caches call

  watch(): AsyncIterator<WatchLoopEvent> & AsyncIterable<WatchLoopEvent> {
    const loop: AsyncIterator<WatchLoopEvent> & AsyncIterable<WatchLoopEvent> = {
      [Symbol.asyncIterator]: () => loop,
      next: async () => {
        while (this.#events.length === 0 && !this.#isLeft) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        return this.#isLeft ? { done: true, value: undefined } : { done: false, value: this.#events.shift()! };
      },
      return: () => {
        this.#isLeft = true;
        this.#wake();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return loop;
  }

  on(_name: 'state', listener: (event: SessionEvent) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  getData(path: string): Promise<unknown> {
    return this.#read('getData', path);
  }

  getChildren(path: string): Promise<unknown> {
    return this.#read('getChildren', path);
  }

  exists(path: string): Promise<unknown> {
    return this.#read('exists', path);
  }

  #read(call: string, path: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#reads.push({ call, path, resolve, reject });
    });
  }
}

/** Until everything that needs no reply has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
