/** How many leases a semaphore has: by the option of its program, or by the data of its znode. */
import { type Acl, type ClientView, KeeperError, type ReadOptions } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { waitForEventUnless } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';

const utf8 = new TextDecoder();
/** Data that are not a number have another purpose, such as the address that Curator writes. */
const sizePattern = /^[1-9]\d{0,8}$/;

export function checkSemaphoreSize(size: number, what: string): void {
  if (!Number.isSafeInteger(size) || size < 1 || size > 999_999_999)
    throw new RangeError(`${what} must be from 1 to 999999999, not ${size}`);
}

export class SemaphoreSize {
  /** By the option; undefined if the znode decides. */
  readonly fixed: number | undefined;
  readonly #path: string;
  readonly #acl: readonly Acl[] | undefined;

  constructor(path: string, fixed: number | undefined, acl: readonly Acl[] | undefined) {
    if (fixed !== undefined) checkSemaphoreSize(fixed, 'the size of a semaphore');
    this.fixed = fixed;
    this.#path = path;
    this.#acl = acl;
  }

  /**
   * Writes the size of this program to the znode if it has none; otherwise rejects with a
   * RecipeError, Mismatch, unless the sizes are the same.
   */
  async agreeOnSize(zk: ClientView, signal: AbortSignal): Promise<number> {
    const { fixed } = this;
    for (;;) {
      const written = await this.#read(zk, signal);
      if (fixed === undefined) return this.#requireSize(written?.data);
      if (written === undefined) {
        if (await this.#create(zk, String(fixed), 'container', signal)) return fixed;
      } else if (written.data === '') {
        if (await this.#setData(zk, String(fixed), written.version, signal)) return fixed;
      } else {
        const size = parseSize(written.data);
        if (size !== undefined && size !== fixed)
          throw new RecipeError(
            'Mismatch',
            `semaphore ${this.#path} has size ${size} in the ensemble, and ${fixed} in this program; use the same size everywhere`,
          );
        return fixed;
      }
    }
  }

  /** Resolves when the znode has another size. */
  async waitForChange(zk: ClientView, currentSize: number, signal: AbortSignal): Promise<void> {
    const isOther = (data: Uint8Array | null) => parseSize(utf8.decode(data ?? undefined)) !== currentSize;
    const read = (options: ReadOptions) => zk.getData(this.#path, options);
    while (await waitForEventUnless(zk, this.#path, read, ({ data }) => isOther(data), signal));
  }

  async set(source: SessionSource, size: number, options: WaitOptions): Promise<void> {
    checkSemaphoreSize(size, 'the size of a semaphore');
    if (this.fixed !== undefined)
      throw new TypeError(
        `the size of semaphore ${this.#path} is fixed to ${this.fixed} by its options; leave the option size out to resize it`,
      );
    using deadline = new Deadline(source, options, `a reply about semaphore ${this.#path}`);
    const { signal } = deadline;
    await runAcrossSessions(source, signal, async (zk) => {
      while (!(await this.#setData(zk, String(size), undefined, signal)) && !(await this.#create(zk, String(size), 'persistent', signal)));
    });
  }

  #requireSize(written: string | undefined): number {
    const size = written === undefined ? undefined : parseSize(written);
    if (size !== undefined) return size;
    throw new RecipeError('Mismatch', `semaphore ${this.#path} has no size yet; set it with resize(), or with the option size`);
  }

  async #read(zk: ClientView, signal: AbortSignal): Promise<{ readonly data: string; readonly version: number } | undefined> {
    try {
      const { data, stat } = await zk.getData(this.#path, { ...retryForever, signal });
      return { data: utf8.decode(data ?? undefined), version: stat.version };
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return undefined;
      throw error;
    }
  }

  /** Whether this client created it; false if it existed. */
  async #create(zk: ClientView, data: string, mode: 'container' | 'persistent', signal: AbortSignal): Promise<boolean> {
    try {
      await zk.create(this.#path, data, { mode, parents: 'container', acl: this.#acl, idempotent: true, ...retryForever, signal });
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NodeExists')) return false;
      throw error;
    }
  }

  /** Whether it existed, with this version. */
  async #setData(zk: ClientView, data: string, version: number | undefined, signal: AbortSignal): Promise<boolean> {
    try {
      await zk.setData(this.#path, data, { version, idempotent: true, ...retryForever, signal });
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode', 'BadVersion')) return false;
      throw error;
    }
  }
}

function parseSize(written: string): number | undefined {
  return sizePattern.test(written) ? Number(written) : undefined;
}
