/** A registered instance of a service, until it is unregistered. */
import { KeeperError } from '@tskeeper/client';
import { checkValue } from '@tskeeper/client/internal';
import { checkCount, surplusOf } from '../given.ts';
import type { PersistentNode, PersistentNodeState } from '../nodes/persistent-node.ts';
import { clientOf, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { bothSettled } from '../waiting/both.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { type RawInstance, rawInstanceOf, rawWith } from './instance-json.ts';
import { changeKind, type InstanceChange } from './service-instance.ts';

/** A registered instance: made by `ServiceRegistry.register`. */
export class Registration<Payload> implements AsyncDisposable {
  readonly #source: SessionSource;
  readonly #node: PersistentNode;
  readonly #checkPayload: (payload: unknown) => void;
  #raw: RawInstance;
  /** One change after the other, as each starts from the result of the last. */
  #last: Promise<unknown> = Promise.resolve();

  /** Made by `ServiceRegistry.register`. */
  constructor(
    source: SessionSource,
    node: PersistentNode,
    raw: Readonly<Record<string, unknown>>,
    checkPayload: (payload: unknown) => void,
  ) {
    this.#source = source;
    this.#node = node;
    this.#raw = raw;
    this.#checkPayload = checkPayload;
  }

  /** Of the znode. */
  get path(): string {
    return this.#node.path;
  }

  /** As `PersistentNode.state`: whether other clients find it, as far as this client knows. */
  get state(): PersistentNodeState {
    return this.#node.state;
  }

  /** As `PersistentNode.signal`: aborted when it cannot be kept any longer. */
  get signal(): AbortSignal {
    return this.#node.signal;
  }

  /** As `PersistentNode.onStateChange`. */
  onStateChange(listener: (state: PersistentNodeState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#node.onStateChange(listener);
  }

  /**
   * Changes fields of the instance; fields that this package does not know, and changes by other
   * clients, stay. Resolves when the znode has the change. The last writer wins. Rejects as
   * `PersistentNode.setData` does, with a RecipeError, TimedOut, and with a RecipeError, Refused,
   * for an invalid payload.
   */
  async update(change: InstanceChange<Payload>, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'update(change, options)');
    checkValue(change, changeKind, 'update: the change');
    using limit = new Limit(clientOf(this.#source), options, `a change of ${this.path}`);
    this.#checkPayload(change.payload);
    const before = this.#last;
    const changing = this.#change(before, change, limit);
    // A call that gives up does not end the earlier ones.
    this.#last = bothSettled(before, changing);
    await changing;
  }

  async #change(before: Promise<unknown>, change: InstanceChange<Payload>, limit: Limit): Promise<void> {
    await unlessAborted(before, limit.signal);
    this.#raw = rawWith(await this.#rawNow(limit), change);
    await this.#node.setData(JSON.stringify(this.#raw), { signal: limit.signal });
  }

  /**
   * As last written, by any client; as to be written, while the znode does not exist or its data
   * are invalid.
   */
  async #rawNow({ signal }: Limit): Promise<RawInstance> {
    try {
      const { data } = await clientOf(this.#source).getData(this.path, { ...untilTheEnd, signal });
      return rawInstanceOf(data);
    } catch (error) {
      // After the end of the session it will be created again, or never.
      if (KeeperError.is(error) ? KeeperError.is(error, 'NoNode') || isEndOfSession(error) : !signal.aborted) return this.#raw;
      throw error;
    }
  }

  /** Unregisters the instance: resolves and ends as `PersistentNode.close`; never rejects. */
  unregister(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'unregister()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#node.close();
  }

  /** As `unregister`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.unregister();
  }
}
