/**
 * How a PersistentNode gets its znode, in one session:
 *
 *     create ──created──> it exists
 *       ^  └──NodeExists──> exists ──of this session, or no ephemeral──> setData: it exists
 *       │                     └──of another session──> waits, or with takesOver deletes it
 *       └───────gone───────────────────────────────────────┘
 */
import { type Acl, type ClientView, type CreateResult, KeeperError, type Millis, type Stat } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { eventUnless, untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { type Content, type Made, write } from './made-node.ts';

export interface MakingSettings {
  readonly mode: 'ephemeral' | 'ephemeralSequential' | 'persistent' | 'persistentWithTtl';
  readonly ttlMs?: Millis | undefined;
  readonly acl?: readonly Acl[] | undefined;
  readonly protection?: boolean | undefined;
  readonly takesOver?: boolean | undefined;
}

export class NodeMaker {
  readonly #path: string;
  readonly #settings: MakingSettings;
  readonly #closing: AbortSignal;

  /**
   * `closing` ends waits for other sessions. It does not end requests in progress, since the caller
   * of `close` needs their outcome.
   */
  constructor(path: string, settings: MakingSettings, closing: AbortSignal) {
    this.#path = path;
    this.#settings = settings;
    this.#closing = closing;
  }

  /**
   * Creates it with the content that `wanted` returns at the time. undefined if `closing` was
   * aborted while the znode belonged to another session. Rejects as a server rejects it, and with
   * the end of the session.
   */
  async make(zk: ClientView, wanted: () => Content): Promise<Made | undefined> {
    while (!this.#closing.aborted) {
      const content = wanted();
      try {
        const { path, stat } = await this.#create(zk, content);
        return { zk, path, czxid: stat.czxid, version: stat.version, content };
      } catch (error) {
        // It was created, and another client has deleted it.
        if (error instanceof RecipeError && error.code === 'Lost') continue;
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
      const found = await this.#take(zk, wanted());
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Until this very znode is gone, or until `closing`. Rejects with the end of the session. */
  async untilGone(zk: ClientView, path: string, czxid: bigint): Promise<void> {
    try {
      const isGone = (stat: Stat | null) => stat?.czxid !== czxid;
      while (await eventUnless(zk, path, (options) => zk.exists(path, options), isGone, this.#closing));
    } catch (error) {
      if (!this.#closing.aborted) throw error;
    }
  }

  #create(zk: ClientView, { data }: Content): Promise<CreateResult> {
    const { mode, acl, ttlMs, protection } = this.#settings;
    const settings = { acl, parents: 'container' } as const;
    if (mode === 'ephemeralSequential' || (mode === 'ephemeral' && protection === true))
      return makeOwn(zk, this.#path, data, { mode, ...settings });
    const life = mode === 'persistentWithTtl' ? { mode, ttlMs: ttlMs! } : { mode };
    return zk.create(this.#path, data, { ...life, ...settings, idempotent: true, ...untilTheEnd });
  }

  /** How to treat a znode that exists already. undefined if it was gone, or is now. */
  async #take(zk: ClientView, content: Content): Promise<Made | undefined> {
    const path = this.#path;
    const { mode, takesOver } = this.#settings;
    const stat = await zk.exists(path, untilTheEnd);
    if (stat === null) return undefined;
    try {
      if (stat.ephemeralOwner === 0n ? !mode.startsWith('ephemeral') : stat.ephemeralOwner === zk.sessionId) {
        const made = { zk, path, czxid: stat.czxid, version: stat.version, content };
        return (await write(made, content)) ? made : undefined;
      }
      if (stat.ephemeralOwner !== 0n && takesOver === true) await zk.delete(path, { ...untilTheEnd, version: stat.version });
      else await this.untilGone(zk, path, stat.czxid);
    } catch (error) {
      // After a lost reply the next create shows the outcome.
      if (!KeeperError.is(error, 'NoNode', 'BadVersion') && !isUnanswered(error)) throw error;
    }
    return undefined;
  }
}
