/**
 * How a PersistentNode gets its znode, in one session:
 *
 *     create ──created──> it exists
 *       ^  └──NodeExists──> exists ──of this session, or no ephemeral──> setData: it exists
 *       │                     └──of another session──> waits, or with takeOver deletes it
 *       └───────gone───────────────────────────────────────┘
 */
import { type Acl, type ClientView, type CreateResult, KeeperError, type Millis, type Stat } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { createOwnZnode, isUnanswered, retryForever } from '../waiting/own-znode.ts';
import { waitForEventUnless } from '../waiting/watch-once.ts';
import { type NodeContent, type CreatedNode, writeNode } from './created-node.ts';

export interface NodeCreatorOptions {
  readonly mode: 'ephemeral' | 'ephemeralSequential' | 'persistent' | 'persistentWithTtl';
  readonly ttlMs?: Millis | undefined;
  readonly acl?: readonly Acl[] | undefined;
  readonly protection?: boolean | undefined;
  readonly takeOver?: boolean | undefined;
}

export class NodeCreator {
  readonly #path: string;
  readonly #settings: NodeCreatorOptions;
  readonly #closing: AbortSignal;

  /**
   * `closing` ends waits for other sessions. It does not end requests in progress, since the caller
   * of `close` needs their outcome.
   */
  constructor(path: string, settings: NodeCreatorOptions, closing: AbortSignal) {
    this.#path = path;
    this.#settings = settings;
    this.#closing = closing;
  }

  /**
   * Creates it with the content that `getContent` returns then. undefined if `closing` was
   * aborted while the znode belonged to another session. Rejects as a server rejects it, and with
   * the end of the session.
   */
  async create(zk: ClientView, getContent: () => NodeContent): Promise<CreatedNode | undefined> {
    while (!this.#closing.aborted) {
      const content = getContent();
      try {
        const { path, stat } = await this.#createZnode(zk, content);
        return { zk, path, czxid: stat.czxid, version: stat.version, content };
      } catch (error) {
        // It was created, and another client has deleted it.
        if (error instanceof RecipeError && error.code === 'Lost') continue;
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
      const found = await this.#takeExisting(zk, getContent());
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Until this very znode is gone, or until `closing`. Rejects with the end of the session. */
  async waitUntilGone(zk: ClientView, path: string, czxid: bigint): Promise<void> {
    try {
      const isGone = (stat: Stat | null) => stat?.czxid !== czxid;
      while (await waitForEventUnless(zk, path, (options) => zk.exists(path, options), isGone, this.#closing));
    } catch (error) {
      if (!this.#closing.aborted) throw error;
    }
  }

  #createZnode(zk: ClientView, { data }: NodeContent): Promise<CreateResult> {
    const { mode, acl, ttlMs, protection } = this.#settings;
    const settings = { acl, parents: 'container' } as const;
    if (mode === 'ephemeralSequential' || (mode === 'ephemeral' && protection === true))
      return createOwnZnode(zk, this.#path, data, { mode, ...settings });
    const lifetime = mode === 'persistentWithTtl' ? { mode, ttlMs: ttlMs! } : { mode };
    return zk.create(this.#path, data, { ...lifetime, ...settings, idempotent: true, ...retryForever });
  }

  /** How to treat a znode that exists already. undefined if it was gone, or is now. */
  async #takeExisting(zk: ClientView, content: NodeContent): Promise<CreatedNode | undefined> {
    const path = this.#path;
    const { mode, takeOver } = this.#settings;
    const stat = await zk.exists(path, retryForever);
    if (stat === null) return undefined;
    try {
      if (stat.ephemeralOwner === 0n ? !mode.startsWith('ephemeral') : stat.ephemeralOwner === zk.sessionId) {
        const made = { zk, path, czxid: stat.czxid, version: stat.version, content };
        return (await writeNode(made, content)) ? made : undefined;
      }
      if (stat.ephemeralOwner !== 0n && takeOver === true) await zk.delete(path, { ...retryForever, version: stat.version });
      else await this.waitUntilGone(zk, path, stat.czxid);
    } catch (error) {
      // After a lost reply the next create shows the outcome.
      if (!KeeperError.is(error, 'NoNode', 'BadVersion') && !isUnanswered(error)) throw error;
    }
    return undefined;
  }
}
