/** A registered instance of a service, until it is unregistered. */
import { KeeperError } from '@tskeeper/client';
import { checkValue } from '@tskeeper/client/internal';
import { checkArgumentCount, argumentCountError } from '../validation.ts';
import type { PersistentNode, PersistentNodeState } from '../nodes/persistent-node.ts';
import { currentClient, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { bothSettled } from '../waiting/promises.ts';
import type { WaitOptions } from '../wait-options.ts';
import { type RawInstance, parseRawInstance, mergeRawInstance } from './instance-json.ts';
import { instanceChangeType, type InstanceChange } from './service-instance.ts';

/** A registered instance: made by `ServiceDiscovery.register`. */
export class Registration<Payload> implements AsyncDisposable {
  readonly #source: SessionSource;
  readonly #node: PersistentNode;
  readonly #validatePayload: (payload: unknown) => void;
  #raw: RawInstance;
  /** One change after the other, as each starts from the result of the last. */
  #lastChange: Promise<unknown> = Promise.resolve();

  /** Made by `ServiceDiscovery.register`. */
  constructor(
    source: SessionSource,
    node: PersistentNode,
    raw: Readonly<Record<string, unknown>>,
    validatePayload: (payload: unknown) => void,
  ) {
    this.#source = source;
    this.#node = node;
    this.#raw = raw;
    this.#validatePayload = validatePayload;
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
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#node.onStateChange(listener);
  }

  /**
   * Changes fields of the instance; fields that this package does not know, and changes by other
   * clients, stay. Resolves when the znode has the change. The last writer wins. Rejects as
   * `PersistentNode.setData` does, with a RecipeError, TimedOut, and with a RecipeError, Refused,
   * for an invalid payload.
   */
  async update(change: InstanceChange<Payload>, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'update(change, options)');
    checkValue(change, instanceChangeType, 'update: the change');
    using deadline = new Deadline(currentClient(this.#source), options, `a change of ${this.path}`);
    this.#validatePayload(change.payload);
    const before = this.#lastChange;
    const changing = this.#change(before, change, deadline);
    // A call that gives up does not end the earlier ones.
    this.#lastChange = bothSettled(before, changing);
    await changing;
  }

  async #change(before: Promise<unknown>, change: InstanceChange<Payload>, deadline: Deadline): Promise<void> {
    await unlessAborted(before, deadline.signal);
    this.#raw = mergeRawInstance(await this.#readRaw(deadline), change);
    await this.#node.setData(JSON.stringify(this.#raw), { signal: deadline.signal });
  }

  /**
   * As last written, by any client; as to be written, while the znode does not exist or its data
   * are invalid.
   */
  async #readRaw({ signal }: Deadline): Promise<RawInstance> {
    try {
      const { data } = await currentClient(this.#source).getData(this.path, { ...retryForever, signal });
      return parseRawInstance(data);
    } catch (error) {
      // After the end of the session it will be created again, or never.
      if (KeeperError.is(error) ? KeeperError.is(error, 'NoNode') || isEndOfSession(error) : !signal.aborted) return this.#raw;
      throw error;
    }
  }

  /** Unregisters the instance: resolves and ends as `PersistentNode.close`; never rejects. */
  unregister(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'unregister()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#node.close();
  }

  /** As `unregister`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.unregister();
  }
}
